"""Path resolution. No other package resolves the paths of guests."""
