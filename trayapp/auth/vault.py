"""The vault: records and named secrets in the OS keyring or in the encrypted file, accessed off the event loop.

Every access has a deadline. All use a single thread, so a locked keyring shows only one dialog. Changes that cannot be
stored stay in memory until they can be. In a process without a gateway, `with_vault` raises an error instead.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import queue
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import anyio

from trayapp.auth.os_keyring import UNLOCK, ChunkedRecords, KeyringEntries, Records
from trayapp.auth.sealed import SealedFile
from trayapp.config.files import locked
from trayapp.config.paths import HOME_VARIABLE, PASSPHRASE, SEALED_NAME
from trayapp.model.errors import KeyringUnavailableError, UsageError

if TYPE_CHECKING:
    from trayapp.model.status import KeyringState

log = logging.getLogger(__name__)

DEADLINE_S = 60.0  # time for the user to answer a dialog that they requested
QUIET_S = 10.0  # time for an access without a dialog, which a keyring answers in milliseconds
SAME_WISH_S = 2.0  # after the user closed a dialog, the time during which the request shows no further dialog
CHECK_AGAIN_S = 10.0  # after a refusal, the time during which the keyring is tried again only at the user's request
KEEP_AGAIN_S = 30.0  # time until the next check of a keyring that refused; it doubles after each check
KEEP_LONGEST_S = 600.0
SECRET_MAX = 64 * 1024  # characters
NAME_MAX = 128
SECRET, NAMES = "secret:", "secrets"  # the prefix of each secret's record, and the list of names
FORBIDDEN = frozenset(":{}$")  # not allowed in a secret's name: `${keyring:NAME:-default}` could not express them

SERVICE = "multi-mcp"
HOME_HEX = 8

Value = TypeVar("Value")
Store = Literal["keyring", "file"]


@dataclass(frozen=True, slots=True)
class Secrets:
    """Values of named secrets. `refused` is the error if some could not be read."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    refused: KeyringUnavailableError | None = None


class Vault:
    """Stored records by key. `changed` is called on the event loop when `state` changes."""

    def __init__(
        self,
        records: Records,
        *,
        deadline_s: float = DEADLINE_S,
        now: Callable[[], float] = time.monotonic,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.state: KeyringState | None = None
        self.refused: KeyringUnavailableError | None = None  # the last refusal, until an access succeeds
        self._records = records
        self._deadline_s = deadline_s
        self._now = now
        self._changed = changed
        self._worker = _Worker()
        self._unstored: dict[str, str | None] = {}  # changes not stored yet; None = deleted
        self._relisted: dict[str, bool] = {}  # names not yet added to the stored list (True) or removed from it (False)
        self._unavailable = asyncio.Event()  # set while something is only in memory, or could not be read
        self._refused_at = 0.0
        self._closed_at = -math.inf  # when the last access failed that may have shown the keyring's dialog

    def use(self, records: Records) -> None:
        """Use another store from now on. Records in the old one stay there."""
        self._records, self.refused = records, None
        self._set_state(None, records)

    def close(self) -> None:
        """Accept no more requests. Do not wait for one in progress."""
        self._worker.close()

    def kept(self, key: str) -> bool:
        """Return True if that record will survive the end of this process."""
        return key not in self._unstored

    async def read(self, key: str, *, asked: bool = False) -> str | None:
        """Read a record. Return None if there is none. Raises KeyringUnavailableError.

        `asked`: the user waits, and may see the keyring's dialog. Otherwise, an access that would show it fails.
        """
        if key in self._unstored:
            return self._unstored[key]
        return await self._do(lambda records: records.read(key), asked)

    async def write(self, key: str, text: str, *, asked: bool = False) -> bool:
        """Store the record. Return False if it is only in memory for now."""
        return await self._keep(key, text, asked)

    async def delete(self, key: str, *, asked: bool = False) -> bool:
        """Delete the record. Return False if it is deleted only in memory for now."""
        return await self._keep(key, None, asked)

    async def _keep(self, key: str, text: str | None, asked: bool) -> bool:
        self._unstored[key] = text

        def put(records: Records) -> None:
            if text is None:
                records.delete(key)
            else:
                records.write(key, text)

        if not await self._change(put, asked, writing=text is not None):
            return False
        if key in self._unstored and self._unstored[key] == text:  # no later change
            del self._unstored[key]
        return True

    async def retry_storing(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Retry storing the changes in memory while the keyring is unavailable. Runs as a task. Shows no dialog."""
        while True:
            await self._unavailable.wait()
            wait_s = KEEP_AGAIN_S
            while self._is_waiting():
                await sleep(wait_s)
                await self._retry()
                wait_s = min(wait_s * 2, KEEP_LONGEST_S)
            self._unavailable.clear()

    def _is_waiting(self) -> bool:
        return bool(self._unstored or self._relisted) or self.refused is not None

    async def follow(self, signals: Callable[[], AsyncGenerator[None]]) -> None:
        """Retry storing whenever the keyring signals a change while it is unavailable. Runs as a task.

        `signals` yields after each change. Once it ends, so does the task.
        """
        while True:
            await self._unavailable.wait()
            async with aclosing(signals()) as changes:
                async for _ in changes:
                    await self._retry()
                    if not self._is_waiting():
                        break
                else:
                    return

    async def store_now(self) -> bool:
        """Store the changes that are only in memory. Return False if some cannot be stored. Shows no dialog."""
        for key, text in list(self._unstored.items()):
            if not await self._keep(key, text, asked=False):
                return False
        return not self._relisted or await self._store_names(asked=False)

    async def look(self, *, asked: bool = False) -> None:
        """Check that the storage opens. `asked` means the same as in `read`. Raises KeyringUnavailableError.

        With `asked`, the dialog is shown again even if the user has just closed it.
        """
        self._closed_at = -math.inf
        await self._do(lambda records: records.read(NAMES), asked)

    async def _retry(self) -> None:
        self._refused_at = -math.inf
        if await self.store_now():
            with suppress(KeyringUnavailableError):
                await self.look()

    async def secrets(self, names: Iterable[str]) -> Secrets:
        """Read the named secrets. Return the existing values, and the error if some could not be read."""
        found: dict[str, str] = {}
        refused: KeyringUnavailableError | None = None
        for name in dict.fromkeys(names):
            try:
                if (value := await self.read(SECRET + name)) is not None:
                    found[name] = value
            except KeyringUnavailableError as error:
                refused = error
        return Secrets(found, refused)

    async def set_secret(self, name: str, value: str) -> bool:
        """Store a named secret. Return False if it, or its name in the list, is only in memory for now.

        Raises UsageError if the name or the value is invalid.
        """
        check_secret(name, value)
        kept = await self.write(SECRET + name, value, asked=True)
        self._relisted[name] = True
        return await self._store_names(asked=True) and kept

    async def delete_secret(self, name: str) -> bool:
        """Delete a named secret. Return False if there was none. Raises KeyringUnavailableError."""
        names = await self.secret_names()
        there = name in names or await self.read(SECRET + name, asked=True) is not None
        await self.delete(SECRET + name, asked=True)
        self._relisted[name] = False
        await self._store_names(asked=True)
        return there

    async def secret_names(self) -> list[str]:
        """Return all names, sorted; only those in memory if the list cannot be read. The keyring may show its dialog.

        The vault stores the list itself, because not every keyring can list its entries.
        """
        try:
            text = await self._do(lambda records: records.read(NAMES), asked=True)
        except KeyringUnavailableError:
            text = None
        return _relisted(text, self._relisted)

    async def _store_names(self, *, asked: bool) -> bool:
        changes = dict(self._relisted)

        def put(records: Records) -> None:
            records.write(NAMES, json.dumps(_relisted(records.read(NAMES), changes)))

        if not await self._change(put, asked, writing=True):
            return False
        self._relisted = {name: there for name, there in self._relisted.items() if changes.get(name) is not there}
        return True

    async def _change(self, put: Callable[[Records], None], asked: bool, *, writing: bool) -> bool:
        """Run `put` in the keyring thread. Return False if the keyring is unavailable."""
        try:
            await self._do(put, asked, writing=writing)
        except KeyringUnavailableError:
            return False
        except asyncio.CancelledError:  # no caller waits; the next attempt shows whether it was stored
            self._unavailable.set()
            raise
        return True

    async def _do(self, work: Callable[[Records], Value], asked: bool, *, writing: bool = False) -> Value:
        """Run `work` in the keyring thread within the deadline, and return its result.

        Raises KeyringUnavailableError, without a new attempt shortly after a refusal.
        """
        since, pause_s = (self._closed_at, SAME_WISH_S) if asked else (self._refused_at, CHECK_AGAIN_S)
        if self.refused is not None and self._now() - since < pause_s:
            raise self.refused.with_traceback(None)
        records = self._records
        deadline_s = self._deadline_s if asked else min(QUIET_S, self._deadline_s)

        def job() -> Value:
            if not asked and records.would_ask(writing=writing):
                raise KeyringUnavailableError("The keyring is locked", UNLOCK, "locked")
            return work(records)

        try:
            value = await self._worker.run(job, deadline_s)
        except KeyringUnavailableError as error:
            self.refused, self._refused_at = error, self._now()
            self._closed_at = self._refused_at if asked else self._closed_at
            self._unavailable.set()
            self._set_state(error.state, records)
            raise
        self.refused = None
        self._set_state("available", records)
        return value

    def _set_state(self, state: KeyringState | None, records: Records) -> None:
        if state == self.state or records is not self._records:
            return
        self.state = state
        log.info("Keyring: %s", state or "not checked yet")
        self._changed()


class _Worker:
    """A thread for blocking calls, started by the first call. It never keeps the process from ending."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[object], Callable[[], object]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stuck: Future[object] | None = None  # a call that exceeded its deadline

    async def run(self, job: Callable[[], Value], deadline_s: float) -> Value:
        """Run `job` in the thread and return its result.

        Raises KeyringUnavailableError after `deadline_s`, or if an earlier job hangs.
        """
        if self._stuck is not None and not self._stuck.done():
            raise _no_answer()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="vault", daemon=True)
            self._thread.start()
        future: Future[Value] = Future()
        self._jobs.put((future, job))  # type: ignore[arg-type]  # a Future[Value] takes the job's result
        answer = asyncio.wrap_future(future)
        # If nobody waits any longer when the job fails, asyncio must not report its error as never retrieved.
        answer.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        with anyio.move_on_after(deadline_s):
            return await asyncio.shield(answer)
        self._stuck = future  # type: ignore[assignment]
        raise _no_answer()

    def close(self) -> None:
        if self._thread is not None:
            self._jobs.put(None)

    def _serve(self) -> None:
        """Run jobs in the thread until close. Exception boundary: a job's exception is passed to its caller."""
        while (asked := self._jobs.get()) is not None:
            future, job = asked
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001 (it is raised where it is awaited)
                future.set_exception(error)


def _no_answer() -> KeyringUnavailableError:
    hint = "Look for its dialog, or restart the keyring service"
    return KeyringUnavailableError("The keyring does not answer", hint, "locked")


def _relisted(text: str | None, changes: Mapping[str, bool]) -> list[str]:
    """Return the names in the stored list `text`, sorted, with `changes` added (True) or removed (False)."""
    try:
        read = json.loads(text or "[]")
    except ValueError:
        read = []
    stored = {name for name in read if isinstance(name, str)} if isinstance(read, list) else set()
    return sorted({name for name in stored if changes.get(name, True)} | {name for name in changes if changes[name]})


def check_secret(name: str, value: str = "x") -> None:
    """Raise UsageError for a secret that cannot be stored or cannot be named in servers.yaml."""
    if not name.strip() or name != name.strip() or len(name) > NAME_MAX or not name.isprintable():
        title = f"A secret's name has 1 to {NAME_MAX} printable characters, with no spaces around it"
        raise UsageError(title, "For example: github")
    if FORBIDDEN & set(name):
        raise UsageError("A secret's name cannot contain : { } $", "For example: github")
    if not value or len(value) > SECRET_MAX:
        raise UsageError(f"A secret has 1 to {SECRET_MAX} characters", "Pass it on stdin")


def records_for(store: Store, config_file: Path, environ: Mapping[str, str]) -> Records:
    """Return the records that `settings.token_store` selects. Opens nothing."""
    entries = KeyringEntries(service_of(environ))
    if store == "keyring":
        return ChunkedRecords(entries)
    passphrase = environ.get(PASSPHRASE, "")
    return SealedFile(config_file.with_name(SEALED_NAME), passphrase, None if passphrase else entries)


def service_of(environ: Mapping[str, str]) -> str:
    """Return the prefix of our keyring entries. Each MULTI_MCP_HOME has its own.

    Two gateways that renewed the same sign-in would end it, since a refresh token is valid only once.
    """
    home = environ.get(HOME_VARIABLE, "").strip()
    if not home:
        return SERVICE
    place = str(Path(home).expanduser().absolute())
    return f"{SERVICE}@{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:HOME_HEX]}"


def with_vault(
    store: Store,
    config_file: Path,
    environ: Mapping[str, str],
    work: Callable[[Vault], Awaitable[Value]],
    *,
    changing: bool = False,
) -> Value:
    """Run `work` on the vault of a process without a gateway, and return its result. Blocks.

    `changing`: the work changes the stored list of names. It then runs under a lock of our own, since keyrings have
    none. Raises what the work raises, KeyringUnavailableError if its last access failed, and StorageError if the lock
    cannot be taken.
    """

    async def run() -> Value:
        vault = Vault(records_for(store, config_file, environ))
        try:
            value = await work(vault)
        finally:
            vault.close()
        if vault.refused is not None:
            raise vault.refused
        return value

    with locked(config_file.with_name(NAMES)) if changing else nullcontext():
        return asyncio.run(run())
