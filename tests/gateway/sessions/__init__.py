"""In-process tests of trayapp/gateway/sessions."""
