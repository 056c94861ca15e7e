"""Ask the user, outside the AI tool, before a call and for a server (PRODUCT 16).

Never here: what a call is, connections, how an ask is drawn (tray, command line, panel).
"""
