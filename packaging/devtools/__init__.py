"""What packaging/dev.py does, in steps. Never here: anything outside the standard library, or imports of trayapp."""
