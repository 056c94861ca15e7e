"""Tests of trayapp/wire."""
