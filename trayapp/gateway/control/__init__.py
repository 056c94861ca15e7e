"""Control requests of tray, panel and command line, and the snapshot that these get.

Never here: client sessions.
"""
