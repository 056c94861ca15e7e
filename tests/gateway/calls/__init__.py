"""Tests of trayapp/gateway/calls, in this process."""
