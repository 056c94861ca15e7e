"""In-process tests of trayapp/gateway/extensions."""
