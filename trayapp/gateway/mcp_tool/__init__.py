"""Tool `mcp`: read its requests, carry them out, and answer in words.

Never here: its definition (exposure), other requests of a session.
"""
