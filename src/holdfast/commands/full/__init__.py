"""The full sandbox, host side: it asks the init process over a socket and feeds the layer of the workspace."""
