"""Staged changes: an overlay over a world, its proposals, and the commit that applies them."""
