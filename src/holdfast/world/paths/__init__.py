"""Path resolution. No other package resolves a path."""
