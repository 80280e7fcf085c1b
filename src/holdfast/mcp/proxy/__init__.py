"""The server side of the Model Context Protocol: our proxy for other agents."""
