"""MCP servers as child processes: started, watched, and ended with all of their descendants."""
