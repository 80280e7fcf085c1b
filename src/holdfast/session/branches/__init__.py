"""Branches of a session: rewind to a turn, fork from it, and merge a fork back."""
