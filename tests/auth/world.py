"""Accounts with a vault in memory and a clock that tests advance."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from tests.auth.issuer import browse
from tests.auth.places import MemoryEntries
from tests.fixtures.clock import FakeClock
from trayapp.auth.accounts import Accounts, SignIn
from trayapp.auth.grant import Target
from trayapp.auth.os_keyring import ChunkedRecords
from trayapp.auth.vault import Vault
from trayapp.model.redact import KNOWN, KnownSecrets


@dataclass
class Person:
    """A user with a keyring and a gateway that tests can restart. `opened` counts visits to the sign-in page."""

    tasks: anyio.abc.TaskGroup
    clock: FakeClock = field(default_factory=FakeClock)
    entries: MemoryEntries = field(default_factory=MemoryEntries)
    opened: int = 0
    pages: list[str] = field(default_factory=list)
    accounts: Accounts = field(init=False)

    def __post_init__(self) -> None:
        self._start()

    def restart(self, tasks: anyio.abc.TaskGroup | None = None) -> None:
        """Replace the gateway with one that runs in `tasks` and has only the data in the keyring."""
        self.accounts.vault.close()
        vars(KNOWN).update(vars(KnownSecrets()))  # a new process knows no secrets yet
        self.tasks, before = tasks or self.tasks, self.tasks
        self._start()
        self.tasks = before

    def _start(self) -> None:
        vault = Vault(ChunkedRecords(self.entries))
        self.accounts = Accounts(vault, self.tasks, self.clock.time, self.clock.sleep)

    def start(self, url: str, **more: object) -> SignIn:
        """Begin a sign-in."""
        return self.accounts.sign_in(Target("web", url, **more))  # type: ignore[arg-type]

    async def sign_in(self, url: str, **more: object) -> SignIn:
        """Carry out the whole sign-in, with a browser. Raises SignInError."""
        begun = self.start(url, **more)
        address = await begun.shown()
        self.opened += 1
        self.pages.append(await browse(address))
        await begun.finished()
        return begun

    def kept(self) -> str:
        """Return all texts in the keyring, joined by newlines."""
        return "\n".join(self.entries.texts.values())


@asynccontextmanager
async def person(entries: MemoryEntries | None = None, limit_s: float = 50) -> AsyncIterator[Person]:
    """Yield a person whose gateway ends with the block. `entries` is the keyring."""
    async with anyio.create_task_group() as tasks:
        made = Person(tasks, entries=entries or MemoryEntries())
        try:
            with anyio.fail_after(limit_s):
                yield made
        finally:
            made.accounts.vault.close()
            tasks.cancel_scope.cancel()
