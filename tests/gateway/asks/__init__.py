"""Tests of trayapp/gateway/asks.py, and of the gate that every call passes."""
