"""Frames, the local socket, and the shapes of its requests.

Never here: what a backend or a tool is.
"""
