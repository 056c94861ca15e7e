"""Recognizes what people paste to add a server: snippets, command lines, links, packages, addresses.

Never here: asking, writing files, the network. Nothing is started.
"""
