"""Text views of sessions, results and events."""
