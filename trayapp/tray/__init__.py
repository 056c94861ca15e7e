"""The tray: the icon, its menu, and its notifications.

Never here: backends. The tray sends requests to the gateway and never imports it.
"""
