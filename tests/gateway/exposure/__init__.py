"""Tests of trayapp/gateway/exposure, in this process."""
