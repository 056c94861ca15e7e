"""How fast and how small multi-mcp is, beside the direct way to a server."""
