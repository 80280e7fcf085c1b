"""What a server may be trusted with: pinned tool descriptions and argument roles."""
