"""Verification of a store, and salvage of a damaged SQLite file row by row."""
