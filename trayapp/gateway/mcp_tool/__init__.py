"""The one tool, `mcp`: its requests read, carried out, and answered in words.

Never here: its definition (exposure), other requests of a session.
"""
