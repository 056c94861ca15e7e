"""Tests of trayapp/panel: access, pages, and actions in a real browser."""
