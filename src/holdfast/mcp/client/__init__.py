"""The client side of the Model Context Protocol: one server as a toolset."""
