"""The panel: pages about the gateway in the user's browser, and the actions on them.

Never here: what an action does. That is up to a control request or a verb of the command line.
"""
