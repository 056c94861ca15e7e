"""Tests of trayapp/gateway/calls, run in the test process."""
