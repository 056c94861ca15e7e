"""In-process tests of trayapp/gateway/scopes."""
