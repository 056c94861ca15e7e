"""Ask the user, outside the AI tool: for consent to a call, or to answer a server's question (PRODUCT 16).

Never here: the routing of calls, connections, how an ask is drawn (tray, command line, panel).
"""
