"""Control requests of tray, panel and command line, and the snapshot that they show.

Never here: client sessions.
"""
