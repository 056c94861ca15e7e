"""Tests of trayapp/gateway/exposure, run in the test process."""
