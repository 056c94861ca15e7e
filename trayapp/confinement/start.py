"""One confined start: the policy, the choice of a mechanism, and the answers to proxy and socket requests.

A start fails if the confinement cannot be set up. With `confine: try`, a server starts unconfined if this system has no
mechanism for it, and its status shows the reason.
"""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio.to_thread

from trayapp.confinement import bubblewrap, landlock, seccomp
from trayapp.confinement.policy import (
    LEADING_OUT,
    TEMPORARY,
    LinkToSecretError,
    Policy,
    Program,
    cache_environment,
    interpreter_of,
    make_policy,
    make_scratch,
    missing_folders,
    root_of,
)
from trayapp.confinement.proxy import HostProxy, proxy_environment
from trayapp.confinement.record import NETWORK, SOCKETS, Refusal, RefusalRecord
from trayapp.confinement.seatbelt import SANDBOX_EXEC, profile
from trayapp.model.errors import ConnectFailedError

Mechanism = Literal["landlock", "bubblewrap", "sandbox-exec"]


class NoMechanismError(Exception):
    """Raised if this system has no mechanism for a program. `reason`: the text after "Cannot confine NAME: "."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def choose_mechanism(network: bool | tuple[str, ...], sockets: bool) -> Mechanism:
    """Return the mechanism for a program with these needs. Raises NoMechanismError. The first call may take 1.5 s."""
    if sys.platform == "darwin":
        if os.path.exists(SANDBOX_EXEC):
            return "sandbox-exec"
        raise NoMechanismError(f"{SANDBOX_EXEC} is missing", "Run it in a container")
    if sys.platform != "linux":
        raise NoMechanismError("this system offers no way to confine a program", "Run it in a container")
    if not seccomp.machine():
        raise NoMechanismError(
            f"multi-mcp does not know the system calls of {os.uname().machine}", "Run it in a container"
        )
    version = landlock.abi()
    if version >= landlock.LEAST_ABI and not sockets:
        return "landlock"
    has = f"only Landlock {version}" if version else "no Landlock"
    lacks = f"this kernel has {has} (version {landlock.LEAST_ABI}, of Linux 6.12, is needed)"
    if landlock.is_forbidden():
        lacks = "a system call filter (of a systemd unit or a container) forbids Landlock"
    if isinstance(network, tuple) and sockets:
        raise NoMechanismError("a list of hosts and Unix sockets cannot be combined", "Remove sockets")
    if sockets and network and version < landlock.LEAST_ABI:
        raise NoMechanismError(
            f"{lacks}: Unix sockets would give access to the desktop", "Remove sockets, or write network: false"
        )
    fault = bubblewrap.fault()
    if not fault:
        return "bubblewrap"
    raise NoMechanismError(
        f"it needs Unix sockets, and {fault}" if sockets else f"{lacks}, and {fault}", bubblewrap.remedy()
    )


class CannotConfineError(ConnectFailedError):
    """Raised when a server is not started because it would not be confined. `remedy`: what the user can do."""

    code = "cannot_confine"
    model_hint = "Tell the user"

    def __init__(self, server: str, reason: str, remedy: str) -> None:
        super().__init__(server, f"Cannot confine {server}: {reason}", f"The server was not started. {remedy}")


@dataclass(frozen=True, slots=True)
class Confinement:
    """The inputs of a confined start, apart from the launch.

    `own`: our own folders, which are never granted. `scratch`: the server's folder for cache and temporary files.
    `said`: variables that servers.yaml sets. `package`: the folder of a locked package or an unpacked bundle.
    """

    record: RefusalRecord
    own: tuple[str, ...]
    scratch: str
    said: frozenset[str] = field(default_factory=frozenset)
    package: str | None = None


def confined_environment(confinement: Confinement, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a confined program, with its own caches and without the variables in LEADING_OUT.

    Variables that servers.yaml sets stay as they are.
    """
    ours = cache_environment(os.path.join(confinement.scratch, "cache"), env)
    kept = {name: value for name, value in env.items() if name not in LEADING_OUT or name in confinement.said}
    return kept | {name: value for name, value in ours.items() if name not in confinement.said}


class ConfinedStart:
    """The start of one confined program. `policy` and `mechanism` are None if it runs unconfined (`confine: try`)."""

    def __init__(
        self, record: RefusalRecord, policy: Policy | None, mechanism: Mechanism | None, program: Program
    ) -> None:
        self._record = record
        self._policy = policy
        self._mechanism = mechanism
        self._program = program
        self._port: int | None = None
        self._variables: dict[str, str] = {}
        self._stack = AsyncExitStack()

    async def prepare(self, stack: AsyncExitStack) -> None:
        """Start the proxy if hosts are listed, and set additional variables for the program.

        `stack` ends what is started here. Raises CannotConfineError.
        """
        self._stack = stack
        if self._policy is None:
            return
        temporary = "/tmp" if self._mechanism == "bubblewrap" else self._program.scratch[1]
        self._variables = dict.fromkeys(TEMPORARY, temporary)
        network = self._policy.network
        if isinstance(network, tuple):
            proxy = HostProxy(network, lambda host: self._record.add(Refusal("network", host)))
            try:
                self._port = await proxy.start()
            except OSError as error:
                reason = f"its proxy cannot listen ({error.strerror})"
                raise CannotConfineError(self._record.server, reason, "See: multi-mcp logs") from None
            stack.push_async_callback(proxy.close)
            self._variables |= proxy_environment(self._port)

    async def start(self, protocol: asyncio.SubprocessProtocol, env: dict[str, str], **options: Any) -> None:
        """Start the program like `loop.subprocess_exec`. Raises OSError, CannotConfineError."""
        argv, env, policy = self._program.argv, env | self._variables, self._policy
        if policy is None or self._mechanism == "sandbox-exec":
            argv = argv if policy is None else (SANDBOX_EXEC, "-p", profile(policy, self._port), *argv)
            options |= dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            await asyncio.get_running_loop().subprocess_exec(lambda: protocol, *argv, env=env, **options)
            return
        if self._mechanism == "bubblewrap":
            # With a list of hosts, the filter around bubblewrap passes requests for Internet sockets to the gateway.
            internet: seccomp.Sockets = "none" if policy.network is False else "all"
            rules = seccomp.filter_program(seccomp.machine(), internet, unix=policy.sockets, namespaces=True)
            reader, writer = os.pipe()
            os.write(writer, rules)
            os.close(writer)
            self._stack.callback(os.close, reader)
            argv = tuple(bubblewrap.command_line(policy, self._program, reader))
            options |= {"pass_fds": (reader,), "cwd": "/"}
        await self._start_in_thread(policy, protocol, argv, env, options)

    async def _start_in_thread(
        self,
        policy: Policy,
        protocol: asyncio.SubprocessProtocol,
        argv: tuple[str, ...],
        env: dict[str, str],
        options: dict[str, Any],
    ) -> None:
        from trayapp.confinement.seccomp_requests import AttributeChanges, Requests
        from trayapp.confinement.spawn import ConfinementFailedError, open_confined, spawn_bubblewrap, spawn_confined

        in_namespaces = self._mechanism == "bubblewrap"
        trace = None if in_namespaces else self._record.trace
        loop = asyncio.get_running_loop()

        def note_socket(unix: bool) -> None:
            self._record.add(Refusal("sockets", SOCKETS) if unix else Refusal("network", NETWORK))

        def note_change(path: str) -> None:
            with suppress(RuntimeError):  # the gateway is ending
                loop.call_soon_threadsafe(self._record.add, Refusal("write", path))

        def spawn(wanted: dict[str, Any]) -> subprocess.Popen[bytes]:
            if in_namespaces:
                process, listener = spawn_bubblewrap(proxied=self._port is not None, options=wanted)
            else:
                process, listener = spawn_confined(policy, self._port, wanted, trace=trace is not None)
            if listener >= 0:
                changes = None if in_namespaces else AttributeChanges(policy, note_change)
                requests = Requests(
                    listener, self._port, note_socket, connected=in_namespaces, changes=changes, trace=trace
                )
                self._stack.callback(requests.close)
            return process

        try:
            await open_confined(spawn, protocol, argv, env=env, **options)
        except ConfinementFailedError as error:
            code = errno.errorcode.get(error.errno or 0, str(error.errno))
            raise CannotConfineError(
                self._record.server, f"the kernel refused ({code})", "See what this system can do: multi-mcp doctor"
            ) from None
        except PermissionError:
            # The policy may not cover a script's interpreter. If so, record the interpreter's folder as refused.
            interpreter = interpreter_of(self._program)
            for path in dict.fromkeys((interpreter, os.path.realpath(interpreter))) if interpreter else ():
                root = os.path.realpath(root_of(path, self._program.home))
                if not policy.allows(root, write=False):
                    self._record.add(Refusal("read", root))
            raise


@asynccontextmanager
async def confining(
    confinement: Confinement, argv: tuple[str, ...], cwd: str, env: Mapping[str, str]
) -> AsyncIterator[ConfinedStart]:
    """Yield the prepared start of a confined program. Answer the program's requests until the context ends.

    Raises CannotConfineError.
    """
    record = confinement.record
    try:
        mechanism: Mechanism | None
        mechanism, policy, program = await anyio.to_thread.run_sync(_decide, confinement, argv, cwd, env)
    except NoMechanismError as error:
        record.way, record.why_open = "open", error.reason
        if record.confine.required:
            record.way = ""
            remedy = f"{error.hint}, or start it unconfined with confine: try"
            raise CannotConfineError(record.server, error.reason, remedy) from None
        mechanism, policy, program = None, None, Program(argv, cwd, env, (), ())
    except LinkToSecretError as error:
        raise CannotConfineError(record.server, str(error), f"Remove {error.path}") from None
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise CannotConfineError(record.server, reason, "Make that folder writable") from None
    async with AsyncExitStack() as stack:
        start = ConfinedStart(record, policy, mechanism, program)
        await start.prepare(stack)
        record.policy, record.cwd = policy, program.cwd
        record.way = mechanism or "open"
        yield start


def _decide(
    confinement: Confinement, argv: tuple[str, ...], cwd: str, env: Mapping[str, str]
) -> tuple[Mechanism, Policy, Program]:
    confine = confinement.record.confine
    mechanism = choose_mechanism(confine.network, confine.sockets)
    scratch = make_scratch(confinement.scratch)
    program = Program(argv, cwd, env, confinement.own, scratch, confinement.package)
    for folder in missing_folders(confine, program):  # only existing paths can be granted
        os.makedirs(folder, exist_ok=True)
    return mechanism, make_policy(confine, program), program
