"""A folder on disk as a world."""
