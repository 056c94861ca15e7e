"""The icon, its menu and its notifications.

Never here: what a backend is; the gateway is asked, never imported.
"""
