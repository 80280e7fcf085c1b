"""Export and import of one session as a ZIP file that verifies itself."""
