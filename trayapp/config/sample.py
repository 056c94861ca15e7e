"""The text of a user's first servers.yaml: one working sample server, and more examples as comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from trayapp.model.plan import Config

PROGRAMS = ("multi-mcp", "multi-mcp-shim")  # each of them can be the bundled sample server
VERB = "sample-server"

_SAMPLE = """\
# multi-mcp: all your MCP servers behind one endpoint.
# Save this file and the change is live within a second; nothing needs a restart.
# Programs that edit it (multi-mcp enable, refresh, ...) keep your comments and your order.

settings:                       # all optional; these are the defaults
  expose: auto                  # auto | tools | search: list every tool, or one tool that finds the others
  idle_timeout: 10              # minutes until an unused server is stopped; 0 = never
  # tool_prefix: server         # server | short | none | mcp: how tools are named

servers:
  # A small server that comes with multi-mcp, so that something works at once. Remove it when you like:
  # multi-mcp remove sample
  sample:
    command: multi-mcp sample-server

  # A server that is a program. It starts when one of its tools is called and stops when idle.
  # files:
  #   command: npx -y @modelcontextprotocol/server-filesystem ~/Documents
  #   env: {LOG_LEVEL: info, API_KEY: "${MY_API_KEY}"}    # ${NAME} comes out of the environment,
  #   lifecycle: lazy           # lazy | eager | keep-alive              ${keyring:NAME} out of the keyring

  # A server on the web. When it asks for a sign-in, the tray icon tells you.
  # docs:
  #   url: https://mcp.example.com/mcp
  #   headers: {X-Team: "${TEAM:-none}"}

  # Tools are added to this file when they are first seen. Switch one off and no client sees it any more:
  # github:
  #   command: [npx, -y, "@modelcontextprotocol/server-github"]
  #   disabled: false           # true switches off the whole server
  #   tools:
  #     search_repositories: {enabled: true}
  #     delete_repository: {enabled: false}
"""


def sample_text() -> str:
    """Return the first servers.yaml. It names no path of this installation: the next one may be elsewhere."""
    return _SAMPLE


def with_sample(config: Config, command: Sequence[str]) -> Config:
    """Return the configuration with the bundled sample server started by `command`, program first.

    Its entry in the file may name a program of an earlier installation.
    """
    program, *args = command
    ours = [
        server
        for server in config.servers.values()
        if server.args == (VERB,) and PurePath(server.command or "").stem in PROGRAMS
    ]
    changed = {server.name: replace(server, command=program, args=tuple(args)) for server in ours}
    return replace(config, servers={**config.servers, **changed}) if changed else config
