"""Tests of trayapp/gateway/process, in this process."""
