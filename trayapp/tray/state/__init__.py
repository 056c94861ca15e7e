"""What the tray knows, and what it shows for that: values and pure functions.

Never here: doing, waiting, drawing.
"""
