"""Tests of trayapp/gateway/scopes, in this process."""
