"""Gateway process: sessions, routing, control.

Never here: the tray, terminals.
"""
