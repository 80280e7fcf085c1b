"""Terminal input and output: console, line editor, keyboard, progress and text layout."""
