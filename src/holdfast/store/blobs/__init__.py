"""Blobs, named by their SHA-256: storing them from open files, reading them, and copying them into files."""
