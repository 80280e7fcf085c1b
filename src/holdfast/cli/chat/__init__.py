"""The interactive conversation."""
