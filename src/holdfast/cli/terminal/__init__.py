"""The terminal itself: console, line editor, keyboard, progress and wrapping."""
