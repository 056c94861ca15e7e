"""Recognize what people paste when they want a server: snippets, command lines, links, packages, addresses.

Never here: asking, writing files, the network. Nothing is started.
"""
