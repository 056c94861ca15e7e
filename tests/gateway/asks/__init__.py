"""Tests of trayapp/gateway/asks, and of the gate that every call passes."""
