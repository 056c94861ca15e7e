"""Other programs' configuration files: where they lie, read, and edited by the fewest bytes, for connect and import.

Never here: servers.yaml (config), printing.
"""
