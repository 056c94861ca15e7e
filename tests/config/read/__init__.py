"""Tests of trayapp/config/read."""
