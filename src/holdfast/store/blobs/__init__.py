"""Contents addressed by their SHA-256: ingest, storage and copying out."""
