"""One HTTP server: Streamable HTTP of every revision, legacy SSE, and management requests.

Never here: sessions' behavior, which is the same as behind the shim, and the SDK.
"""
