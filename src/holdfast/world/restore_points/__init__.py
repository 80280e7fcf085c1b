"""Restore points: snapshots of a workspace for rewinds and forks."""
