"""Tests of trayapp/catalog."""
