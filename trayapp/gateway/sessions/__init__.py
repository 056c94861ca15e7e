"""The conversation with one client: handshake, lists, subscriptions, pending requests.

Never here: sockets, starting servers.
"""
