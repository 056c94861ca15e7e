"""Recognize what people paste to add a server: snippets, command lines, links, packages, addresses.

Never here: asking the user, writing files, using the network, starting programs.
"""
