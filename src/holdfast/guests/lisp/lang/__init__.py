"""The Lisp language: reader, expander, syntax tree and printer."""
