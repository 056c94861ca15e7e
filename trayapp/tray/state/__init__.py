"""The tray's state, and the view and notifications for it: values and pure functions.

Never here: actions, waiting, drawing.
"""
