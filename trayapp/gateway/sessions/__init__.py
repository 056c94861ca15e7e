"""One client's conversation: handshake, lists, subscriptions, waiting requests.

Never here: sockets, starting servers.
"""
