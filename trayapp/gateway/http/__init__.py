"""One HTTP server: Streamable HTTP of every revision, legacy SSE, and management requests.

Never here: the SDK, and the behavior of sessions, which is the same as behind the shim.
"""
