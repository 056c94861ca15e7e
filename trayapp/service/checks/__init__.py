"""The list of the checks of `multi-mcp doctor`, in the order of its report.

Never here: the checks themselves, printing.
"""

from __future__ import annotations

from trayapp.service.checks import gateway, servers, system
from trayapp.service.checks.check import Check

CHECKS = (
    Check("version.python", system.python_version),
    Check("config.parses", servers.config_parses),
    Check("config.servers", servers.config_servers),
    Check("server.launch", servers.launches),
    Check("path.programs", servers.programs),
    Check("confine.available", system.available),
    Check("home.short", gateway.home_short),
    Check("socket.mode", gateway.socket_mode),
    Check("socket.answers", gateway.socket_answers),
    Check("port.http", gateway.http_port),
    Check("processes.stale", gateway.stale_processes),
    Check("disk.space", system.space),
    Check("disk.writable", system.writable),
    Check("log.size", system.log_size),
    Check("bus.session", system.session_bus),
    Check("keyring.available", system.keyring),
    Check("secrets.file", system.sealed_file),
    Check("tray.host", system.tray_host),
)
