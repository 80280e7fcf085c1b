"""Export and import of one session as an archive: a ZIP file that contains its own verifier."""
