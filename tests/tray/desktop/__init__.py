"""Tests of the tray on real panels, under Xvfb."""
