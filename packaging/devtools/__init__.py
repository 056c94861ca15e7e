"""The commands of packaging/dev.py, in steps. Never here: third-party libraries, or imports of trayapp."""
