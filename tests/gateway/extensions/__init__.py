"""Tests of trayapp/gateway/extensions, in this process."""
