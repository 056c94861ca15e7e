"""The base of all errors that a person may see (what happened, what to do, the exit code), and the common errors.

gateway/calls/errors turns these into JSON-RPC errors. A `Problem` is not raised, but shown until it is solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from trayapp.model.redact import redacted


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIG_INVALID = 3
    NO_GATEWAY = 4
    SERVER_UNAVAILABLE = 5
    SIGN_IN_WANTED = 6
    ALREADY_RUNNING = 7


LEAVE_IT = "Only they may enable it again. If it is needed, tell them, but do not enable it yourself"


class MultiMcpError(Exception):
    """The base of our errors.

    `title` is what happened, `hint` is what to do, and `field` is the form field concerned, or "".
    """

    code = "failed"  # a stable name for the kind of error, for JSON output and for tests
    exit_code = ExitCode.FAILED
    model_hint: str | None = None  # shown to a model instead of `hint`, which is for people; None: `hint` is shown

    def __init__(self, title: str, hint: str = "", field: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.hint = hint
        self.field = field

    def __str__(self) -> str:
        return f"{self.title}. {self.hint}" if self.hint else self.title


class UsageError(MultiMcpError):
    """A command or request was given invalid arguments."""

    code = "usage"
    exit_code = ExitCode.USAGE


class ConfigError(MultiMcpError):
    """servers.yaml, or one of its entries, is invalid."""

    code = "config_invalid"
    exit_code = ExitCode.CONFIG_INVALID


class FileChangedError(ConfigError):
    """A file changed after we read it and before we wrote it. Nothing was written."""

    code = "file_changed"
    exit_code = ExitCode.FAILED


class StorageError(MultiMcpError):
    """One of our files or folders cannot be read or written (disk full, read-only, permissions)."""

    code = "storage"


KEYRING = "keyring:"  # prefix of a secret's name, in `${keyring:NAME}`
COMMAND = "cmd:"  # prefix of a command that prints a secret, in `${cmd:op read op://vault/item}`


class MissingVariableError(ConfigError):
    """A `${NAME}` in a server's settings has no value. `names` lists the missing names, in order of appearance."""

    code = "missing_variable"
    exit_code = ExitCode.SERVER_UNAVAILABLE
    model_hint = "Ask the user to set it"

    def __init__(self, names: list[str]) -> None:
        listed = ", ".join(names)
        subject, verb = ("Variables", "are") if len(names) > 1 else ("Variable", "is")
        remedy = "Set the value in the environment, or write ${NAME:-default} in servers.yaml"
        plain = [name for name in names if not name.startswith(KEYRING)]
        if secret := next((name for name in plain if redacted(f"{name}=plain-value") != f"{name}=plain-value"), ""):
            kept = f"{secret}: multi-mcp secret set {secret}, and write ${{keyring:{secret}}} in servers.yaml"
            remedy = f"Store {kept}. Or set the value in the environment"
        if names and not plain:
            remedy = f"Store it with: multi-mcp secret set {names[0].removeprefix(KEYRING)}"
        super().__init__(f"{subject} {listed} {verb} not set", remedy)
        self.names = names


class CommandNotApprovedError(ConfigError):
    """The user has not approved the command that prints a secret."""

    code = "command_not_approved"
    exit_code = ExitCode.SERVER_UNAVAILABLE
    model_hint = "Ask the user to review the command in servers.yaml and to approve it"

    def __init__(self, command: str) -> None:
        hint = "Review it on the panel's Approvals page, or with: multi-mcp approve"
        super().__init__(f"The command of a secret is not approved: {command}", hint)


class KeyringUnavailableError(MultiMcpError):
    """Secrets can be neither read nor stored now, since their store is locked or missing (`state`)."""

    code = "keyring_unavailable"

    def __init__(self, title: str, hint: str, state: Literal["locked", "missing"]) -> None:
        super().__init__(title, hint)
        self.state = state


class NoGatewayError(MultiMcpError):
    """No gateway answers on the local socket."""

    code = "no_gateway"
    exit_code = ExitCode.NO_GATEWAY

    def __init__(self, title: str = "The gateway is not running", hint: str = "") -> None:
        super().__init__(title, hint or "Start it with: multi-mcp start --detach")


class AlreadyRunningError(MultiMcpError):
    """A gateway of this user already runs in this home. `pid` is its process id, or 0 if unknown."""

    code = "already_running"
    exit_code = ExitCode.ALREADY_RUNNING

    def __init__(self, pid: int) -> None:
        who = f" (process {pid})" if pid else ""
        super().__init__(f"The gateway is already running{who}", "See it with: multi-mcp status")
        self.pid = pid


class ServerError(MultiMcpError):
    """A server is unavailable. `server` is its name in servers.yaml."""

    code = "server_unavailable"
    exit_code = ExitCode.SERVER_UNAVAILABLE

    def __init__(self, server: str, title: str, hint: str = "") -> None:
        super().__init__(title, hint)
        self.server = server


class ServerNotFoundError(ServerError):
    """No server with that name is configured."""

    code = "server_not_found"

    def __init__(self, server: str, known: list[str]) -> None:
        listed = ", ".join(known) if known else "none is configured"
        super().__init__(server, f"No server is named {server}", f"Known servers: {listed}")


class ServerDisabledError(ServerError):
    """The server is disabled in servers.yaml."""

    code = "server_disabled"
    model_hint = f"The user disabled it. {LEAVE_IT}"

    def __init__(self, server: str) -> None:
        super().__init__(server, f"{server} is disabled", f"Enable it with: multi-mcp enable {server}")


class ConnectFailedError(ServerError):
    """The server could not be started or reached, or did not finish its handshake."""

    code = "connect_failed"
    retry_after_s: float | None = None  # the wait that the response requested


class ServerBackoffError(ServerError):
    """The server failed recently and is not retried yet."""

    code = "server_backoff"

    def __init__(self, server: str, failed_s_ago: float, why: str) -> None:
        super().__init__(
            server, f"{server} failed {failed_s_ago:.0f}s ago: {why}", f"Try again with: multi-mcp reconnect {server}"
        )
        self.model_hint = f'Try again immediately with the tool mcp: {{"connect":"{server}"}}'


class SignInWantedError(ServerError):
    """The server requires a sign-in before it serves."""

    code = "needs_auth"
    exit_code = ExitCode.SIGN_IN_WANTED

    def __init__(self, server: str) -> None:
        super().__init__(server, f"{server} needs a sign-in", f"Sign in with: multi-mcp auth {server}")
        self.model_hint = f"Ask the user to sign in, in the tray or with: multi-mcp auth {server}"


class KeyringLockedError(ServerError):
    """The server needs a sign-in or secret from the keyring or the encrypted file, which cannot be opened now."""

    code = "keyring_locked"
    model_hint = "Ask the user to unlock it"

    def __init__(self, server: str, refused: KeyringUnavailableError) -> None:
        super().__init__(server, f"{server} cannot be used: {refused.title}", refused.hint)


class ConnectionLostError(ServerError):
    """A connection to the server ended unexpectedly or was stopped. Its open requests are not sent again."""

    code = "connection_lost"


class ToolNotFoundError(MultiMcpError):
    """No enabled tool has that name. `suggestions` are the nearest known names, best first."""

    code = "tool_not_found"

    def __init__(self, asked: str, suggestions: list[str] | None = None) -> None:
        self.suggestions = suggestions or []
        near = f"Did you mean {', '.join(self.suggestions)}?" if self.suggestions else "See: multi-mcp list"
        super().__init__(f"No tool is named {asked}", near)
        self.model_hint = near if self.suggestions else 'Find one with the tool mcp: {"search":"what it should do"}'


class ApprovalRequiredError(ToolNotFoundError):
    """The tool exists, but is withheld until the user approves it."""

    code = "approval_required"

    def __init__(self, asked: str) -> None:
        super().__init__(asked)
        self.title = f"{asked} is held back until the user approves it"


class AmbiguousToolError(MultiMcpError):
    """A name matches more than one tool. `candidates` are their `server/tool` paths, sorted."""

    code = "ambiguous_tool"

    def __init__(self, asked: str, candidates: list[str]) -> None:
        super().__init__(f"{asked} matches more than one tool", f"Specify the server: {', '.join(candidates)}")
        self.candidates = candidates


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or warning in one of the user's files. `line` is 1-based; 0 means no line."""

    file: str
    line: int
    message: str
    hint: str = ""
    column: int = 0
    server: str | None = None
    fatal: bool = True  # True if the file (server None) or the server's entry is unusable


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem as a JSON object, with a key for each field."""
    keys = ("file", "line", "column", "server", "message", "hint", "fatal")
    return {key: getattr(problem, key) for key in keys}
