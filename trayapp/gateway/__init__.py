"""The gateway process: sessions, routing and control.

Never here: the tray, terminals.
"""
