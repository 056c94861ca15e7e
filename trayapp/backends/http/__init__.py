"""MCP servers over HTTP: Streamable HTTP and legacy SSE.

Never here: imports in the package itself; its modules load httpx2 (see `connect`).
"""
