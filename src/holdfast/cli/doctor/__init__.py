"""The measurement of `holdfast doctor --watch`: how long work keeps the event loop busy."""
