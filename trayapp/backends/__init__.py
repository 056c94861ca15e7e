"""Backends: the MCP servers that the gateway runs or connects to.

Never here: client sessions, exposed names, the gateway's own files.
"""
