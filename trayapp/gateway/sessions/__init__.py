"""One client's conversation: handshake, lists, subscriptions, requests that wait.

Never here: sockets, starting servers.
"""
