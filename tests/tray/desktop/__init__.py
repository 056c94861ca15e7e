"""The tray on real panels, under Xvfb."""
