"""The endpoint for clients that come over HTTP.

Never here: sessions' behaviour, which is the same as behind the shim.
"""
