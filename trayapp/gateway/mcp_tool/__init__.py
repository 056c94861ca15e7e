"""The tool `mcp`: read its requests, carry them out, and answer in words.

Never here: the tool's definition (exposure), other requests of a session.
"""
