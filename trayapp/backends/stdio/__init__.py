"""MCP servers as processes: started, watched, and ended with all of their descendants."""
