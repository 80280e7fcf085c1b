"""The half that lives inside the sandbox: the Python that CPython in WASI runs around untrusted code.

This package is not imported by Holdfast; it is baked into the component. Nothing here protects the host: the code it
runs shares its interpreter and may change all of it. What it says is therefore checked outside as a claim.
"""
