"""Files in the data directory: private ones, watched ones, and whole trees to remove."""
