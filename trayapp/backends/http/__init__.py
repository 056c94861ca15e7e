"""MCP servers over HTTP: Streamable HTTP and legacy SSE.

Never here: imports in this file, because `connect` imports from the package without loading httpx2.
"""
