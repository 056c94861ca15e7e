"""Tests of trayapp/tray/linux."""
