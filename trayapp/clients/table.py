"""The supported clients, as data: where each keeps its servers, in which format, and its limits.

The comment above each row names its sources. Every client is connected by editing its file. This works without
the client on the PATH and without an account. The user can see a diff first, and undo the edit byte for byte.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from trayapp.clients import jsonc, toml_file, yaml_file
from trayapp.clients.family import Family, Keys
from trayapp.config.problems import nearest
from trayapp.model.errors import UsageError

Entry = dict[str, Any]
Platforms = dict[str, tuple[str, ...]]  # "linux" | "darwin" | "win32" | "" for all others -> templates, best first
Restart = Literal["no", "reload", "restart"]
# Ways to refer to a variable, besides `${NAME}` and `${env:NAME}`. `%NAME%` works only on Windows. `shell`: what a
# POSIX shell expands in a text, including commands.
Syntax = Literal["$NAME", "%NAME%", "${{ secrets.NAME }}", "shell"]

NAME = "multi-mcp"  # the name of our entry in every client


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client. The class is broad because it has a field for each way in which clients differ."""

    name: str
    title: str
    files: Platforms  # path templates of the file with its servers (see files.locate)
    form: Entry  # its entry for a stdio server, without the program and the arguments
    holder: Keys = ("mcpServers",)  # the key path of its servers
    family: Family = jsonc
    format: Literal["JSON", "JSONC", "TOML", "YAML"] = "JSON"
    installed: tuple[str, ...] = ()  # it is installed if one of these exists; (): its file's folder
    project: tuple[str, ...] = ()  # files that it also reads in a project's folder
    fresh: str = ""  # text that a file created by us must also contain
    inner: str = ""  # one more key after `holder` in newer files
    http: bool = True
    restart: Restart = "no"  # what the user must do before it reads a new entry
    max_tools: int = 0  # the most tools that it accepts, 0 = no known limit
    max_name: int = 0  # the most characters of a tool's name with its server's name, 0 = the usual limit of 64
    timeout_unit: Literal["ms", "s", ""] = ""  # unit of `timeout` in its entries; "" if it documents none
    timeout_of: Literal["call", "start"] = "call"  # what `timeout` limits: a call, or the start and the first list
    variables: tuple[Syntax, ...] = ()
    runs_in: Literal["session", "home"] = "session"  # where servers without `cwd` start ("home" if unknown)

    def entry(self, command: str, args: list[str]) -> Entry:
        """Return the client's entry for a stdio server."""
        key = "cmd" if "cmd" in self.form else "command"
        words = {key: command, "args": args} if "args" in self.form else {key: [command, *args]}
        return deepcopy(self.form) | words

    def templates(self, platform: str) -> tuple[str, ...]:
        """Return the path templates of the client's file on a platform, best first."""
        return self.files.get(platform, self.files.get("", ()))


# The entries that clients write for a stdio server. Client.entry fills in the program and its arguments.
_PLAIN: Entry = {"command": "", "args": []}
_STDIO: Entry = {"type": "stdio", **_PLAIN}
_WITH_ENV: Entry = {**_STDIO, "env": {}}
_COPILOT: Entry = {"type": "local", **_PLAIN, "tools": ["*"]}
_OPENCODE: Entry = {"type": "local", "command": [], "enabled": True}  # `command` is one list of all words
_ZED: Entry = {**_PLAIN, "env": {}}
_GOOSE: Entry = {"type": "stdio", "name": NAME, "enabled": True, "cmd": "", "args": [], "envs": {}, "timeout": 300}


def _all(*templates: str) -> Platforms:
    return {"": templates}


EDITIONS = ("Code", "Code - Insiders", "VSCodium")  # editions of VS Code, each with its own user folder


def _code(below: str, *editions: str, before: tuple[str, ...] = ()) -> Platforms:
    folders = {"": "{config}", "darwin": "{library}", "win32": "{appdata}"}
    return {
        platform: (*before, *(f"{folder}/{edition}/User/{below}" for edition in editions))
        for platform, folder in folders.items()
    }


def _vscode(name: str, title: str, edition: str, *project: str) -> Client:
    """Return the client for one edition of VS Code. Users may have several editions, so each is its own client."""
    return Client(
        name, title, _code("mcp.json", edition), _STDIO, ("servers",), jsonc, "JSONC", project=project, max_tools=128
    )  # fmt: skip


CLIENTS: tuple[Client, ...] = (
    # https://code.claude.com/docs/en/mcp (user scope: ~/.claude.json; local scope: below `projects` in it; .mcp.json)
    # https://code.claude.com/docs/en/settings (CLAUDE_CONFIG_DIR); the first page documents `timeout` in ms
    Client(
        "claude-code", "Claude Code",
        _all("{CLAUDE_CONFIG_DIR}/.claude.json", "{home}/.claude.json"), _WITH_ENV,
        installed=("{home}/.claude",),
        project=(".mcp.json",),
        restart="restart", timeout_unit="ms",
    ),
    # https://modelcontextprotocol.io/docs/develop/connect-local-servers; the packaged app for Windows has its own
    # copy of %APPDATA%; on Linux, the layout is the same under ~/.config
    Client(
        "claude-desktop", "Claude Desktop",
        {
            "": ("{config}/Claude/claude_desktop_config.json",),
            "darwin": ("{library}/Claude/claude_desktop_config.json",),
            "win32": (
                "{localappdata}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
                "{appdata}/Claude/claude_desktop_config.json",
            ),
        }, _PLAIN, http=False, restart="restart", runs_in="home",
    ),
    # https://developers.openai.com/codex/mcp and /codex/config-reference (CODEX_HOME; startup_timeout_sec,
    # tool_timeout_sec). Hermes has the same key `mcp_servers` in YAML, with `timeout` and `connect_timeout` in s:
    # https://hermes-agent.nousresearch.com/docs/reference/mcp-config-reference
    Client(
        "codex", "Codex", _all("{CODEX_HOME}/config.toml", "{home}/.codex/config.toml"), _PLAIN,
        ("mcp_servers",), toml_file, "TOML",
        project=(".codex/config.toml",), restart="restart",
        timeout_unit="s",
    ),
    # https://cursor.com/docs/context/mcp (files, interpolation); the limit for a name is from Cursor's own warning
    Client(
        "cursor", "Cursor", _all("{home}/.cursor/mcp.json"), _STDIO,
        project=(".cursor/mcp.json",), max_tools=40, max_name=60,
    ),
    # https://code.visualstudio.com/docs/copilot/reference/mcp-configuration (servers, inputs; 128 tools per request)
    _vscode("vscode", "VS Code (Copilot)", EDITIONS[0], ".vscode/mcp.json"),
    # https://code.visualstudio.com/docs/configure/settings and the page above (the user folder: `Code - Insiders`)
    _vscode("vscode-insiders", "VS Code Insiders", EDITIONS[1]),
    # https://github.com/VSCodium/vscodium/blob/master/docs/migration.md (the user folder: VSCodium)
    _vscode("vscodium", "VSCodium", EDITIONS[2]),
    # https://docs.github.com/copilot/how-tos/copilot-cli (mcp-config.json; COPILOT_HOME moves ~/.copilot)
    # https://github.com/github/copilot-sdk (`timeout` in ms)
    # https://github.com/github/copilot-cli, changelog.md (`$NAME` in env; `oauthClientId`, `auth.redirectPort`;
    # .mcp.json and .github/mcp.json in a project's folder)
    Client(
        "copilot-cli", "Copilot CLI",
        _all("{COPILOT_HOME}/mcp-config.json", "{home}/.copilot/mcp-config.json"), _COPILOT,
        project=(".mcp.json", ".github/mcp.json"), restart="restart",
        timeout_unit="ms", variables=("$NAME",),
    ),
    # https://opencode.ai/docs/mcp-servers and /docs/config (~/.config/opencode on all platforms; files are merged;
    # `timeout` in ms, for listing tools)
    # https://opencode.ai/v2/docs/mcp-servers (`mcp.servers`, without `enabled`)
    Client(
        "opencode", "OpenCode",
        _all(
            "{OPENCODE_CONFIG}", "{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc",
            "{config}/opencode/config.json",
        ), _OPENCODE, ("mcp",), jsonc, "JSONC",
        project=("opencode.jsonc", "opencode.json", ".opencode/opencode.jsonc", ".opencode/opencode.json"),
        inner="servers", restart="restart", timeout_unit="ms", timeout_of="start",
    ),
    # https://antigravity.google/docs/mcp (`serverUrl`; 2.0, the CLI and the IDE share ~/.gemini/config;
    # .agents/mcp_config.json in a workspace)
    Client(
        "antigravity", "Antigravity",
        _all("{home}/.gemini/config/mcp_config.json", "{home}/.gemini/antigravity/mcp_config.json"), _PLAIN,
        project=(".agents/mcp_config.json",), restart="reload",
    ),
    # https://geminicli.com/docs/tools/mcp-server (settings.json; `url` is SSE, `httpUrl` is HTTP; `timeout` in ms;
    # `$NAME`, on Windows `%NAME%`)
    # https://geminicli.com/docs/reference/configuration (GEMINI_CLI_HOME replaces the home folder)
    Client(
        "gemini-cli", "Gemini CLI",
        _all("{GEMINI_CLI_HOME}/.gemini/settings.json", "{home}/.gemini/settings.json"), _PLAIN,
        ("mcpServers",), jsonc, "JSONC",
        project=(".gemini/settings.json",),
        restart="restart", max_name=63, timeout_unit="ms", variables=("$NAME", "%NAME%"),
    ),
    # https://docs.devin.ai/desktop/cascade/mcp, formerly https://docs.windsurf.com/windsurf/cascade/mcp
    # (~/.codeium/windsurf, `serverUrl`, 100 tools). Since June 2026 the editor is Devin Desktop. Its
    # Cascade agent reads this file, but new tabs run the agent of the next row.
    Client(
        "windsurf", "Windsurf (Cascade)", _all("{home}/.codeium/windsurf/mcp_config.json"), _PLAIN,
        restart="reload", max_tools=100,
    ),
    # https://docs.devin.ai/cli/extensibility/mcp/configuration and /desktop/cascade/mcp (Devin CLI, and the agent of
    # new tabs in Devin Desktop: $XDG_CONFIG_HOME/devin or ~/.config/devin, on Windows %APPDATA%). Until mid-2026 the
    # servers were in config.json beside it, and older copies of these pages still say so.
    Client(
        "devin", "Devin (CLI, Desktop)",
        {"": ("{config}/devin/mcp_config.json",), "win32": ("{appdata}/devin/mcp_config.json",)}, _PLAIN,
        ("mcpServers",), jsonc, "JSONC",
        project=tuple(f".devin/{name}.json" for name in ("mcp_config", "mcp_config.local", "config", "config.local")),
        restart="restart",
    ),
    # https://zed.dev/docs/ai/mcp and /docs/configuring-zed (settings.json with comments; `timeout` in s)
    Client(
        "zed", "Zed",
        {
            "": ("{config}/zed/settings.json", "{home}/.var/app/dev.zed.Zed/config/zed/settings.json"),
            "darwin": ("{home}/.config/zed/settings.json",),
            "win32": ("{appdata}/Zed/settings.json",),
        }, _ZED, ("context_servers",), jsonc, "JSONC",
        project=(".zed/settings.json",), timeout_unit="s",
    ),
    # https://docs.cline.bot/getting-started/config (~/.cline/data/settings for the IDEs, the CLI and the SDK;
    # formerly in VS Code's folder)
    # https://docs.cline.bot/cli/configuration (CLINE_DATA_DIR, CLINE_MCP_SETTINGS_PATH)
    # https://github.com/cline/cline, sdk/packages/shared/src/storage/paths.ts (CLINE_DIR)
    # The CLI writes {transport: {type, command, args}}; the flat form is read too. `timeout` is in seconds.
    Client(
        "cline", "Cline",
        _code(
            "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", *EDITIONS,
            before=(
                "{CLINE_MCP_SETTINGS_PATH}", "{CLINE_DATA_DIR}/settings/cline_mcp_settings.json",
                "{CLINE_DIR}/data/settings/cline_mcp_settings.json",
                "{home}/.cline/data/settings/cline_mcp_settings.json",
            ),
        ), _PLAIN, installed=("{home}/.cline",), timeout_unit="s",
    ),
    # https://docs.roocode.com/features/mcp/using-mcp-in-roo (mcp_settings.json, .roo/mcp.json; `timeout` in s)
    Client(
        "roo", "Roo Code",
        _code("globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", *EDITIONS), _PLAIN,
        project=(".roo/mcp.json",), timeout_unit="s",
    ),
    # https://docs.continue.dev/reference (config.yaml: `mcpServers` is a list of items with a name)
    # https://docs.continue.dev/customize/deep-dives/mcp (A workspace may have a YAML or JSON file for each server in
    # .continue/mcpServers. The user's config.yaml applies to all workspaces, so our entry is there.)
    # https://github.com/continuedev/continue/issues/12254 (The CLI reads only config.yaml.)
    # https://github.com/continuedev/continue, core/context/mcp/MCPConnection.ts (`apiKey` is a bearer token.)
    Client(
        "continue", "Continue", _all("{home}/.continue/config.yaml"), _STDIO,
        ("mcpServers",), yaml_file.LISTED, "YAML",
        fresh="name: Local Assistant\nversion: 1.0.0\nschema: v1\n", restart="reload",
        variables=("${{ secrets.NAME }}",),
    ),
    # https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html (Junie, in the IDEs and alone; stdio).
    # JetBrains AI Assistant documents no file: servers are added in its settings, or by a plugin through its API
    # (https://www.jetbrains.com/help/ai-assistant/mcp.html). Its storage is not meant for other programs.
    Client(
        "jetbrains", "JetBrains (Junie)", _all("{home}/.junie/mcp/mcp.json"), _PLAIN,
        installed=("{home}/.junie",), project=(".junie/mcp/mcp.json",), http=False,
    ),
    # https://block.github.io/goose/docs/guides/config-files (`extensions`; `cmd`, `envs`; `timeout` in s);
    # https://github.com/block/goose, crates/goose/src/config/paths.rs (GOOSE_PATH_ROOT) and agents/extension_manager.rs
    # (`$NAME` of `envs` and `env_keys` in headers)
    Client(
        "goose", "Goose",
        {"": ("{GOOSE_PATH_ROOT}/config/config.yaml", "{config}/goose/config.yaml"),
         "win32": ("{GOOSE_PATH_ROOT}/config/config.yaml", "{appdata}/Block/goose/config/config.yaml")}, _GOOSE,
        ("extensions",), yaml_file.MAPPED, "YAML", restart="restart", timeout_unit="s", variables=("$NAME",),
    ),
    # https://kiro.dev/docs/mcp/configuration and /docs/cli/mcp/configuration (one file for the editor and the CLI)
    Client(
        "kiro", "Kiro", _all("{home}/.kiro/settings/mcp.json"), _PLAIN,
        installed=("{home}/.kiro",), project=(".kiro/settings/mcp.json",),
    ),
    # https://kilo.ai/docs/automate/mcp/using-in-kilo-code (`mcp` in kilo.jsonc, for the extension and the CLI)
    Client(
        "kilo", "Kilo Code", _all("{config}/kilo/kilo.jsonc", "{config}/kilo/kilo.json"), _OPENCODE, ("mcp",), jsonc,
        "JSONC",
        project=("kilo.jsonc", "kilo.json", ".kilo/kilo.jsonc", ".kilo/kilo.json"),
        restart="restart", timeout_unit="ms", timeout_of="start",
    ),
    # https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp (settings.json, as Gemini CLI's; `httpUrl`; `$NAME`;
    # `discoveryTimeoutMs`); https://github.com/QwenLM/qwen-code (QWEN_HOME replaces ~/.qwen)
    Client(
        "qwen-code", "Qwen Code", _all("{QWEN_HOME}/settings.json", "{home}/.qwen/settings.json"), _PLAIN,
        ("mcpServers",), jsonc, "JSONC",
        project=(".qwen/settings.json", ".qwen/settings.local.json"),
        restart="restart", max_name=63, timeout_unit="ms", variables=("$NAME",),
    ),
    # https://lmstudio.ai/docs/app/mcp (Cursor's notation; the folder of some installations is ~/.cache/lm-studio)
    Client(
        "lm-studio", "LM Studio", _all("{home}/.lmstudio/mcp.json", "{home}/.cache/lm-studio/mcp.json"), _PLAIN,
        runs_in="home",
    ),
    # https://ampcode.com/manual#mcp (one key with a dot in it; settings.json or settings.jsonc, on every system below
    # ~/.config)
    Client(
        "amp", "Amp", _all("{home}/.config/amp/settings.json", "{home}/.config/amp/settings.jsonc"), _PLAIN,
        ("amp.mcpServers",), jsonc, "JSONC",
        project=(".amp/settings.json", ".amp/settings.jsonc"),
        restart="restart",
    ),
    # https://docs.warp.dev/agents/capabilities/mcp (servers in files; `working_directory`)
    Client(
        "warp", "Warp", _all("{home}/.warp/.mcp.json"), _PLAIN,
        installed=("{home}/.warp",), project=(".warp/.mcp.json",),
    ),
    # https://github.com/charmbracelet/crush
    # - README.md, docs/config/README.md: crush.json is still read. Other programs should not edit the newer crushrc,
    # which is a shell script.
    # - internal/config/load.go, GlobalConfig: CRUSH_GLOBAL_CONFIG is a folder. The default is in ~/.config on every
    # system, because the crush.json in %LOCALAPPDATA% holds state.
    # - internal/config/config.go, MCPConfig: `timeout` in s, for the connection; values are expanded by a shell.
    Client(
        "crush", "Crush", _all("{CRUSH_GLOBAL_CONFIG}/crush.json", "{config}/crush/crush.json"), _STDIO,
        ("mcp",), jsonc, "JSON",
        project=(".crush.json", "crush.json"), restart="restart", timeout_unit="s",
        timeout_of="start", variables=("shell",),
    ),
    # https://docs.factory.ai/cli/configuration/mcp (mcp.json of the user and of a project)
    Client(
        "droid", "Factory Droid", _all("{home}/.factory/mcp.json"), _STDIO,
        project=(".factory/mcp.json",),
    ),
    # https://docs.augmentcode.com/cli/integrations (`mcpServers` in settings.json)
    Client(
        "auggie", "Auggie CLI", _all("{home}/.augment/settings.json"), _WITH_ENV, ("mcpServers",), jsonc, "JSONC",
        restart="restart",
    ),
)  # fmt: skip

BY_NAME = {client.name: client for client in CLIENTS}
ALIASES = {
    "claude": "claude-code", "copilot": "copilot-cli", "gemini": "gemini-cli", "code": "vscode", "junie": "jetbrains",
    "kiro-cli": "kiro", "kilocode": "kilo", "qwen": "qwen-code", "factory": "droid", "lmstudio": "lm-studio",
}  # fmt: skip


def find_client(name: str) -> Client:
    """Return the client with that name or alias. Raises UsageError, which suggests a name or lists all."""
    known = BY_NAME.get(ALIASES.get(name, name))
    if known is None:
        near = nearest(name, BY_NAME)
        hint = f"Did you mean {near}?" if near else f"Clients: {', '.join(BY_NAME)}"
        raise UsageError(f"No client is named {name}", hint)
    return known
