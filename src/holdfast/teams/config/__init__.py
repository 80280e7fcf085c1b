"""The teams file: roster, parsing and edits."""
