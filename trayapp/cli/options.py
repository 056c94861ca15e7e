"""Parts that verbs share: options such as --json, examples in their help, requests to the gateway, and hints."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from trayapp.cli.output import is_terminal, note, waiting
from trayapp.cli.verbs import SHOWING_ALL
from trayapp.model.errors import MultiMcpError, NoGatewayError
from trayapp.model.logs import GATEWAY_LOG
from trayapp.model.text import one_line
from trayapp.service.command_line import typed_command
from trayapp.service.gateway_launch import connect_gateway
from trayapp.service.pause import PausedError
from trayapp.wire.control import DEFAULT_TIMEOUT_S, SETTLE, ControlClient, ControlError
from trayapp.wire.rundir import run_dir

SETTLED_S = 10.0  # the longest wait for a new gateway to list tools that it does not know yet
STARTS = "trayapp.cli.starts"  # key in a context's meta: the verb may start a gateway
FLOW = "trayapp.cli.flow"  # key in a context's meta: the verb is a step of a longer flow, which prints the next step
Function = TypeVar("Function", bound=Callable[..., Any])

UNKNOWN = frozenset({"server_not_found", "tool_not_found"})  # codes of errors that --project may solve
DISCOVERY_TIMEOUT_S = 120.0  # generous: servers whose tools are unknown, such as a project's, are started first


def verb(
    name: str, *lines: str, json: bool = True, group: click.Group | None = None
) -> Callable[[Callable[..., object]], click.Command]:
    """Return a decorator that makes a function the verb `name`. `lines`: the examples at the end of its help.

    `json`: add the option --json as the parameter `as_json`. `group`: the parent of a subcommand.
    """

    def make(function: Callable[..., object]) -> click.Command:
        command = click.command(name, epilog=examples(*lines) if lines else None)(function)
        if json:
            command.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."))
        if group is not None:
            group.add_command(command)
        return command

    return make


def project_option(function: Function) -> Function:
    """Add the option --project to a verb and return the verb.

    Without the option, the verb applies to the user's own servers, whatever the current folder is.
    """
    kind = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)
    help_text = "Act as a session in this folder, with the servers of its trusted project."
    return click.option("--project", metavar="DIR", type=kind, help=help_text)(function)


def of_project(project: Path | None) -> dict[str, str]:
    """Return the request parameter that names the project; {} without a project."""
    return {} if project is None else {"project": str(project)}


def examples(*lines: str) -> str:
    """Return these examples as the text at the end of a verb's help."""
    return "\b\n" + "\n".join(f"{'Example: ' if n == 0 else '         '}{line}" for n, line in enumerate(lines))


def gateway(timeout: float | None = DEFAULT_TIMEOUT_S) -> ControlClient:
    """Return a client connected to this user's gateway. Raises NoGatewayError.

    A verb with a `start_option` starts a gateway if none runs, unless multi-mcp is paused or --no-start was given.
    `timeout`: seconds to wait for each answer, None for no limit.
    """
    run = run_dir(os.environ)
    try:
        return connect_gateway(run, timeout)
    except NoGatewayError as error:
        context = click.get_current_context(silent=True)
        if isinstance(error, PausedError) or context is None or not context.meta.get(STARTS):
            raise
    start_gateway(run, linger=True, settles=context.info_name in SHOWING_ALL)
    return connect_gateway(run, timeout)


def start_option() -> click.Option:
    """Return the option --no-start, for verbs that start a gateway if none runs."""

    def note_it(context: click.Context, option: click.Parameter, forbidden: bool) -> None:
        context.meta[STARTS] = not forbidden

    words = "Fail if no gateway is running, instead of starting one."
    return click.Option(["--no-start"], is_flag=True, expose_value=False, callback=note_it, help=words)


def start_gateway(run: str, *, linger: bool, settles: bool = False) -> int:
    """Start a gateway in the background, wait until it is ready, and return its process id. Raises NoGatewayError.

    `linger`: the gateway ends some time after its last use. `settles`: also wait until the tools of all servers are
    known, for at most SETTLED_S seconds.
    """
    from trayapp.config.paths import find_paths
    from trayapp.service.gateway_launch import await_ready, start_detached

    log_file = find_paths(os.environ).log_dir / GATEWAY_LOG
    with waiting("Starting the gateway"):
        try:
            process = start_detached(os.environ, linger=linger)
        except OSError as error:
            raise NoGatewayError(f"Cannot start the gateway: {error.strerror}", "Install multi-mcp again") from None
        await_ready(run, process=process, log_file=log_file)
        if settles:
            with suppress(NoGatewayError), ControlClient(run, SETTLED_S) as client:
                client.call(SETTLE)
    return process.pid


def ask(
    method: str,
    params: dict[str, Any] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT_S,
    heard: Callable[[str], None] | None = None,
) -> Any:
    """Send one control request and return its result. Raises NoGatewayError, ControlError.

    `timeout`: seconds to wait for the result, None for no limit. `heard` is called with each note that the gateway
    sends about the result.
    """
    with gateway(timeout) as client:
        return client.call(method, params, heard)


def as_error(error: dict[str, Any]) -> ControlError:
    """Return the exception for an error inside an answer: `{"title", "hint", "code", "exit_code"}`."""
    code, exit_code = error.get("code", "failed"), int(error.get("exit_code", 1))
    return ControlError(error["title"], error.get("hint", ""), code, exit_code)


# --- hints


def current_project() -> Path | None:
    """Return the folder of the project that contains the current folder, or None if there is none. Blocks."""
    from trayapp.clients.files import Machine
    from trayapp.config.layers.project import find_project  # imported late: most verbs do not need it

    try:
        found = find_project(Path.cwd(), Machine().home)
    except OSError:  # the folder was removed
        return None
    return None if found is None else found.parent


def quoted_folder(folder: Path) -> str:
    """Return a folder as one word of a command line, quoted if needed."""
    from trayapp.clients.files import Machine, shown_path

    whole = str(folder)
    return shown_path(folder, Machine().home) if shlex.quote(whole) == whole else shlex.quote(whole)


def list_command(folder: Path) -> str:
    """Return the command that lists the tools of a project's sessions."""
    return f"multi-mcp list --project {quoted_folder(folder)}"


@contextmanager
def project_hint(project: Path | None) -> Iterator[None]:
    """If the block fails because of an unknown name, add the hint to pass --project, and raise the error again.

    The hint is added only in the folder of a project, and if --project was not passed.
    """
    try:
        yield
    except ControlError as error:
        folder = current_project() if project is None and error.code in UNKNOWN else None
        if folder is not None:
            error.hint = (
                f"{error.hint}{'; ' if error.hint else ''}for this project, pass --project {quoted_folder(folder)}"
            )
        raise


def import_hint() -> str:
    """Return one line that offers to import the servers of AI tools. Blocks.

    It is "" if there is nothing to offer (see `first_offers`), servers.yaml is invalid, or stderr is not a terminal.
    """
    if not is_terminal(sys.stderr):
        return ""
    from trayapp.clients import imports  # takes 50 ms with the imports below; only a person needs the hint
    from trayapp.clients.context import own_context
    from trayapp.config.paths import find_paths
    from trayapp.config.read.parse import parse
    from trayapp.config.store import ConfigStore

    store = ConfigStore(find_paths(os.environ).config_file)
    try:
        text = store.read()
        config = None if text is None else parse(text, str(store.path))
    except MultiMcpError:
        return ""
    words = imports.offer_text(imports.first_offers(config, own_context()))
    return one_line(f"{words}. Next: {typed_command()} setup") if words else ""


def next_step() -> str:
    """Return what to do after a start, in one line: import servers, or connect an AI tool. Blocks.

    It is "" if there is nothing to import and an AI tool is connected, or if stderr is not a terminal.
    """
    words = import_hint()
    if words or not is_terminal(sys.stderr):
        return words
    from trayapp.clients.connect import found_clients
    from trayapp.clients.context import own_context

    if any(state.state == "connected" for state in found_clients(own_context())):
        return ""
    return f"No AI tool is connected yet. Connect yours with: {typed_command()} setup"


def say_next_step() -> None:
    """Print the line of `next_step` on stderr, unless it is ""."""
    if words := next_step():
        note(words)
