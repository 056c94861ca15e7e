"""MCP servers as we run and reach them.

Never here: client sessions, exposed names, files of ours.
"""
