"""From a picture to a feature."""
