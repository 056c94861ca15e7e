"""Sign-ins and secrets: where they are kept, how they are come by.

Never here: connections to servers, configuration files.
"""
