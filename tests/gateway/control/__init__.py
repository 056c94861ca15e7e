"""Tests of trayapp/gateway/control, in this process."""
