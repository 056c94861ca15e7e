"""The tool `mcp`: read its calls, carry them out, and answer in text.

The tool's definition is in exposure, and other requests of a session are in sessions.
"""
