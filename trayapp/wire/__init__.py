"""Frames, the local socket and its request shapes.

Never here: what a backend is, or a tool.
"""
