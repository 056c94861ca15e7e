"""Commands that provide secrets: `${cmd:op read op://vault/item}` in a server's entry.

Only a command that the user has approved, word for word, is run. No shell is involved. The output is a secret: it goes
to the server and never into a log. The command runs at each start of the server, so that a rotated secret takes effect.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream

from trayapp.auth.vault import Secrets
from trayapp.backends.launch import NO_SECRETS, OURS, Keyring, find_program
from trayapp.backends.stdio.guardian import signal_group
from trayapp.config.read.command import split_command
from trayapp.model.errors import COMMAND, CommandNotApprovedError, ConfigError
from trayapp.model.redact import redacted
from trayapp.model.text import one_line

LIMIT_S = 60.0  # a password manager may ask the user for a fingerprint
OUTPUT_LARGEST = 64 * 1024  # in bytes; an output of this size or more is refused
REASON_LARGEST = 300  # the most characters of a command, and of its error output, in an error


class SecretSources:
    """Fetches the secrets that servers' entries name: from the vault, or by running approved commands."""

    def __init__(self, vault: Keyring, is_approved: Callable[[str], bool], environ: Mapping[str, str]) -> None:
        self._vault = vault
        self._is_approved = is_approved  # blocks
        self._environ = environ

    async def secrets(self, names: Sequence[str]) -> Secrets:
        """Fetch the named secrets, and return those that exist. Raises ConfigError if a command is refused or fails."""
        kept = [name for name in names if not name.startswith(COMMAND)]
        found = await self._vault(kept) if kept else NO_SECRETS
        if len(kept) == len(names):
            return found
        outputs = {name: await self._output(name.removeprefix(COMMAND)) for name in names if name not in kept}
        return Secrets({**found.values, **outputs}, found.refused)

    async def _output(self, command: str) -> str:
        if not await anyio.to_thread.run_sync(self._is_approved, command):
            raise CommandNotApprovedError(shown(command))
        env = {name: value for name, value in self._environ.items() if name not in OURS}
        try:
            words = split_command(command)
        except ValueError as error:
            raise ConfigError(f"Cannot read the command for a secret: {error}", f"Correct {shown(command)}") from None
        program = find_program(words[0], env, None) if words else None
        if program is None:
            raise ConfigError(
                f"Cannot find the program that prints a secret: {shown(command)}", "Install it, or correct the command"
            )
        return await _run([program, *words[1:]], env, command)


async def _run(argv: Sequence[str], env: Mapping[str, str], command: str) -> str:
    """Run `argv` and return its output without the final line break. `command` is for errors. Raises ConfigError."""
    try:
        process = await anyio.open_process(
            argv, stdin=subprocess.DEVNULL, env=dict(env), start_new_session=sys.platform != "win32"
        )
    except OSError as error:
        raise ConfigError(f"Cannot run {shown(command)}: {error.strerror}", "Correct it in servers.yaml") from None
    output, errors = bytearray(), bytearray()
    with anyio.move_on_after(LIMIT_S) as limit:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, process.stdout, output)
                tasks.start_soon(_read, process.stderr, errors)
            await process.wait()
        finally:
            if process.returncode is None:
                signal_group(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            with anyio.CancelScope(shield=True):
                await process.aclose()
    if limit.cancelled_caught:
        raise ConfigError(f"{shown(command)} took longer than {LIMIT_S:g} s", "Run it in a terminal to see why")
    if process.returncode:
        said = one_line(redacted(errors.decode("utf-8", "replace").strip()))[:REASON_LARGEST]
        why = f": {said}" if said else f" with exit code {process.returncode}"
        raise ConfigError(f"{shown(command)} failed{why}", "Run it in a terminal to see why")
    text = output.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    if not text or "\0" in text or len(output) >= OUTPUT_LARGEST:
        raise ConfigError(
            f"{shown(command)} printed no usable secret", "It must print only the secret, less than 64 KiB"
        )
    return text


async def _read(stream: ByteReceiveStream | None, into: bytearray) -> None:
    assert stream is not None
    async for data in stream:
        into += data[: OUTPUT_LARGEST - len(into)]


def shown(command: str) -> str:
    """Return a command for errors: redacted, on one line, shortened, in backquotes."""
    return f"`{one_line(redacted(command))[:REASON_LARGEST]}`"
