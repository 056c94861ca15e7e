"""Conversation with one client: handshake, lists, subscriptions, waiting requests.

Never here: sockets, starting servers.
"""
