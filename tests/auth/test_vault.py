"""The vault with keyrings that refuse, hang and recover."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import anyio.lowlevel
import pytest

from tests.auth.places import MemoryEntries
from tests.fixtures.clock import settle
from trayapp.auth.os_keyring import ChunkedRecords
from trayapp.auth.vault import CHECK_AGAIN_S, KEEP_AGAIN_S, SAME_WISH_S, Vault, check_secret
from trayapp.model.errors import KeyringUnavailableError, UsageError

pytestmark = pytest.mark.anyio


class MoodyEntries(MemoryEntries):
    """A keyring that tests can lock, remove and block. It counts accesses, and collects their thread ids."""

    def __init__(self) -> None:
        super().__init__()
        self.mood: Literal["well", "locked", "missing", "hangs"] = "well"
        self.asked = 0
        self.dialogs = 0
        self.fails = False  # raises an error after a hang
        self.threads: set[int] = set()
        self.answered = threading.Event()

    def get(self, name: str) -> str | None:
        self._check()
        return super().get(name)

    def set(self, name: str, text: str) -> None:
        self._check()
        super().set(name, text)

    def would_ask(self, *, writing: bool) -> bool:
        return self.mood == "locked"

    def _check(self) -> None:
        self.asked += 1
        self.threads.add(threading.get_ident())
        if self.mood == "hangs":
            assert self.answered.wait(20)
            if self.fails:
                raise KeyringUnavailableError("It is locked", "", "locked")
        elif self.mood != "well":
            self.dialogs += 1
            raise KeyringUnavailableError(f"It is {self.mood}", "", self.mood)


@dataclass
class Desk:
    """A vault over MoodyEntries, with a clock that only tests advance."""

    entries: MoodyEntries = field(default_factory=MoodyEntries)
    time: float = 0.0
    states: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.vault = Vault(ChunkedRecords(self.entries), deadline_s=0.5, now=lambda: self.time, changed=self._changed)

    def _changed(self) -> None:
        self.states.append(self.vault.state)


@asynccontextmanager
async def a_desk() -> AsyncIterator[Desk]:
    made = Desk()
    try:
        yield made
    finally:
        made.entries.answered.set()
        made.vault.close()


@pytest.mark.requirement("vault-off-loop")
async def test_all_accesses_use_one_thread_beside_the_event_loop() -> None:
    async with a_desk() as desk:
        await asyncio.gather(*(desk.vault.write(f"k{n}", "x") for n in range(20)))
        assert len(desk.entries.threads) == 1
        assert threading.get_ident() not in desk.entries.threads
        assert desk.states == ["available"]


async def test_the_keyring_is_not_accessed_before_it_is_needed() -> None:
    before = threading.active_count()
    async with a_desk() as desk:
        assert (desk.vault.state, desk.entries.asked, threading.active_count()) == (None, 0, before)


@pytest.mark.requirement("vault-off-loop")
async def test_a_hung_keyring_delays_only_the_first_access_by_its_deadline() -> None:
    async with a_desk() as desk:
        desk.entries.mood = "hangs"
        with pytest.raises(KeyringUnavailableError, match="does not answer"):
            await desk.vault.read("key")
        for _ in range(5):
            with pytest.raises(KeyringUnavailableError):
                await desk.vault.read("key", asked=True)
        assert (desk.vault.state, desk.entries.asked) == ("locked", 1)
        desk.entries.mood = "well"
        desk.entries.answered.set()
        with anyio.fail_after(10):
            while desk.vault.state != "available":
                desk.time += CHECK_AGAIN_S
                await anyio.lowlevel.checkpoint()
                try:
                    assert await desk.vault.read("key") is None
                except KeyringUnavailableError:
                    continue


@pytest.mark.requirement("vault-memory")
@pytest.mark.parametrize("mood", ["locked", "missing"])
async def test_a_change_that_cannot_be_stored_stays_in_memory_and_is_stored_later(
    mood: Literal["locked", "missing"],
) -> None:
    async with a_desk() as desk, anyio.create_task_group() as tasks:
        naps: list[float] = []
        nap = anyio.Event()

        async def sleep(seconds: float) -> None:
            naps.append(seconds)
            await nap.wait()

        tasks.start_soon(desk.vault.retry_storing, sleep)
        await desk.vault.write("old", "x")
        desk.entries.mood = mood
        assert not await desk.vault.write("key", "secret")
        assert not await desk.vault.delete("old")
        assert (await desk.vault.read("key"), await desk.vault.read("old")) == ("secret", None)
        assert (desk.vault.state, desk.vault.kept("key")) == (mood, False)
        assert desk.states == ["available", mood]
        desk.entries.mood = "well"
        desk.time += CHECK_AGAIN_S
        nap.set()
        with anyio.fail_after(10):
            while desk.entries.texts != {"key": "1:secret"}:
                await anyio.lowlevel.checkpoint()
            while not desk.vault.kept("key"):
                await anyio.lowlevel.checkpoint()
        assert naps[0] == KEEP_AGAIN_S
        await settle()
        assert desk.vault.refused is None
        assert desk.states == ["available", mood, "available"]
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("vault-one-dialog")
async def test_a_locked_keyring_shows_its_dialog_only_at_a_request_of_the_user() -> None:
    async with a_desk() as desk:
        desk.entries.mood = "locked"
        for _ in range(5):
            desk.time += CHECK_AGAIN_S
            with pytest.raises(KeyringUnavailableError):
                await desk.vault.read("key")
            assert not await desk.vault.write("other", "x")
        assert (desk.entries.dialogs, desk.vault.state) == (0, "locked")
        with pytest.raises(KeyringUnavailableError):
            await desk.vault.read("key", asked=True)
        assert desk.entries.dialogs == 1


@pytest.mark.requirement("vault-off-loop")
async def test_an_answer_after_its_deadline_is_not_reported_by_the_event_loop() -> None:
    unhandled = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unhandled.append(context))
    async with a_desk() as desk:
        desk.entries.mood = "hangs"
        with pytest.raises(KeyringUnavailableError, match="does not answer"):
            await desk.vault.read("key", asked=True)
        desk.entries.fails = True
        desk.entries.answered.set()
        while threading.active_count() and desk.entries.asked < 2:
            desk.time += CHECK_AGAIN_S
            with suppress(KeyringUnavailableError):
                await desk.vault.read("key")
        await settle()
        gc.collect()
        assert unhandled == []


@pytest.mark.requirement("vault-follows")
async def test_a_signal_of_an_unlocked_keyring_leads_to_an_immediate_access() -> None:
    async with a_desk() as desk, anyio.create_task_group() as tasks:
        said = asyncio.Queue[None]()

        async def signals() -> AsyncGenerator[None]:
            while True:
                await said.get()
                yield

        desk.entries.mood = "locked"
        assert not await desk.vault.write("key", "x")
        tasks.start_soon(desk.vault.follow, signals)
        said.put_nowait(None)
        await settle()
        desk.entries.mood = "well"
        said.put_nowait(None)  # the clock still shows the time of the refusal
        with anyio.fail_after(10):
            while desk.vault.state != "available":
                await anyio.lowlevel.checkpoint()
        assert (desk.entries.texts, desk.entries.dialogs) == ({"key": "1:x"}, 0)
        tasks.cancel_scope.cancel()


async def test_a_refusal_is_remembered_for_a_while() -> None:
    async with a_desk() as desk:
        desk.entries.mood = "missing"
        for _ in range(3):
            with pytest.raises(KeyringUnavailableError, match="missing"):
                await desk.vault.read("key")
        assert desk.entries.asked == 1
        desk.entries.mood = "well"
        desk.time += CHECK_AGAIN_S
        assert await desk.vault.read("key") is None


async def test_another_store_is_used_from_then_on() -> None:
    async with a_desk() as desk:
        await desk.vault.write("key", "here")
        other = MemoryEntries()
        desk.vault.use(ChunkedRecords(other))
        assert desk.vault.state is None
        assert await desk.vault.read("key") is None
        await desk.vault.write("key", "there")
        assert other.texts == {"key": "1:there"}


# -- named secrets ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("secret-verbs")
async def test_secrets_are_stored_listed_and_deleted_by_name() -> None:
    async with a_desk() as desk:
        vault = desk.vault
        assert await vault.set_secret("github", "ghp_x")
        assert await vault.set_secret("a b", "y")
        assert await vault.secret_names() == ["a b", "github"]
        found = await vault.secrets(["github", "nobody", "a b", "github"])
        assert (dict(found.values), found.refused) == ({"github": "ghp_x", "a b": "y"}, None)
        assert "ghp_x" not in repr(found)
        assert await vault.delete_secret("github")
        assert not await vault.delete_secret("github")
        assert await vault.secret_names() == ["a b"]


@pytest.mark.requirement("vault-one-dialog")
async def test_a_dialog_that_the_user_closed_is_not_shown_again_for_the_same_secret() -> None:
    async with a_desk() as desk:
        assert await desk.vault.set_secret("github", "x")
        desk.entries.mood = "locked"
        assert not await desk.vault.set_secret("other", "y")
        assert (desk.entries.dialogs, await desk.vault.secret_names()) == (1, ["other"])
        desk.time += SAME_WISH_S
        with pytest.raises(KeyringUnavailableError):
            await desk.vault.delete_secret("github")
        assert desk.entries.dialogs == 2
        desk.entries.mood = "well"
        desk.time += CHECK_AGAIN_S
        assert await desk.vault.store_now()
        assert await desk.vault.secret_names() == ["github", "other"]


async def test_without_a_keyring_secrets_stay_in_memory() -> None:
    async with a_desk() as desk:
        desk.entries.mood = "missing"
        assert not await desk.vault.set_secret("github", "x")
        found = await desk.vault.secrets(["github", "other"])
        assert dict(found.values) == {"github": "x"}
        assert found.refused is not None
        assert await desk.vault.secret_names() == ["github"]


@pytest.mark.parametrize("name", ["", " ", " x", "a:b", "a{b", "a}b", "a$b", "a\nb", "x" * 129])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        check_secret(name)


@pytest.mark.parametrize("value", ["", "x" * 65537])
def test_an_empty_or_too_long_value_is_refused(value: str) -> None:
    with pytest.raises(UsageError):
        check_secret("name", value)


async def test_a_keyring_that_is_unlocked_later_is_noticed_without_a_dialog() -> None:
    async with a_desk() as desk, anyio.create_task_group() as tasks:
        naps: list[float] = []

        async def sleep(seconds: float) -> None:
            naps.append(seconds)
            desk.time += seconds
            if len(naps) == 7:
                desk.entries.mood = "well"

        desk.entries.mood = "locked"
        with pytest.raises(KeyringUnavailableError):
            await desk.vault.read("key")
        tasks.start_soon(desk.vault.retry_storing, sleep)
        with anyio.fail_after(10):
            while desk.vault.state != "available":
                await anyio.lowlevel.checkpoint()
        assert naps == [30, 60, 120, 240, 480, 600, 600]
        assert desk.entries.dialogs == 0
        tasks.cancel_scope.cancel()
