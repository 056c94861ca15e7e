"""Control requests of the tray and the command line, and the snapshot that they get.

Never here: client sessions.
"""
