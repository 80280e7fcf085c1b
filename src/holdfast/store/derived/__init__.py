"""Projections of the journals that stores keep beside them and rebuild: the words to search, and what sessions used."""
