"""Tests of trayapp/tray/state."""
