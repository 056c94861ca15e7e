"""Tests of trayapp/config/layers."""
