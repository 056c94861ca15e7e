"""Tests of trayapp/tray."""
