"""Tests of trayapp/gateway/sessions, in this process."""
