"""What things are: frozen values and pure functions.

Never here: I/O, clocks, third-party imports.
"""
