"""Tests of trayapp/clients."""
