"""Control requests of the tray and the command line, and the snapshot they get.

Never here: client sessions.
"""
