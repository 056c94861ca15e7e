"""The tray: the icon, its menu, and its notifications.

Never here: backends. The tray asks the gateway and never imports it.
"""
