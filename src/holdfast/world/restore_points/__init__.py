"""Restore points: snapshots of a workspace that a rewind or a fork can return to."""
