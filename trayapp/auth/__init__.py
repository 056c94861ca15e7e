"""Sign-ins and secrets: how they are obtained, and where they are stored.

Never here: connections to servers, configuration files.
"""
