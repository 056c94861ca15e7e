"""Tests of trayapp/gateway/control, run in the test process."""
