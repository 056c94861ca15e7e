"""Tests of trayapp/tray/linux/sni."""
