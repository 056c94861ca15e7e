"""The icon, its menu and notifications on Linux, over D-Bus or XEmbed.

Never here: what is shown (tray/state).
"""
