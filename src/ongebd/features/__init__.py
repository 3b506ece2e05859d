"""The features of many videos: extracted as the stream does it, in a store that training reads."""
