"""The domain model: frozen values and pure functions.

Never here: I/O, clocks, third-party imports.
"""
