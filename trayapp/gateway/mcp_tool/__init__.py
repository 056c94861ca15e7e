"""The tool `mcp`: read its calls, carry them out, and answer in text.

Never here: the tool's definition (exposure), other requests of a session.
"""
