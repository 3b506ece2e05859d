"""What was found, written for people and programs."""
