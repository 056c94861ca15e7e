"""The panel: pages about the gateway in the user's browser, and the actions on them.

Never here: the work of an action. A control request or a verb of the command line does it.
"""
