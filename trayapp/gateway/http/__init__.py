"""One HTTP server: Streamable HTTP of every revision, legacy SSE, and management requests.

This package does not use the SDK. Sessions are implemented elsewhere: they behave as they do behind the shim.
"""
