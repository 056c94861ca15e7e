"""The tray's state and everything that it shows for that state: values and pure functions.

Never here: actions, waiting, drawing.
"""
