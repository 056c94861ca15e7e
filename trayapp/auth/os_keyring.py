"""The operating system's keyring: Secret Service, Keychain, Credential Manager. Only this module imports keyring.

No exception of a backend leaves this module: callers get KeyringUnavailableError. On Linux, the Secret Service also
signals over the session bus that a collection was locked, unlocked or created, or that the service started or ended.

A text too long for one entry is stored in parts. They are written before the manifest that makes them valid, so an
interrupted write leaves the old text intact.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import closing, suppress
from importlib import import_module
from typing import Any, Protocol

import anyio
import anyio.to_thread

from trayapp.model.errors import KeyringUnavailableError

log = logging.getLogger(__name__)
# Windows takes 2560 bytes and keyring writes UTF-16 (jaraco/keyring #355); CredWrite fails beyond that.
WINDOWS_LIMIT = 1280
USER = "multi-mcp"
# Backends that store nothing, or plain text. They are never used.
UNFIT = ("keyring.backends.fail", "keyring.backends.null", "keyrings.alt")
SECRET_SERVICE = "keyring.backends.SecretService"
UNLOCK = "Unlock it with: multi-mcp auth"
LOCKED = ("KeyringLocked", "InitError", "LockedException", "PromptDismissedException")
NO_KEYRING = "Install gnome-keyring, KWallet or KeePassXC, or set token_store: file in servers.yaml"
SERVICE = "org.freedesktop.secrets"
PLACE = "/org/freedesktop/secrets"
GATHER_S = 0.2  # an unlock causes several signals
# keyring logs a traceback at each start for every backend of another system that the packaged program lacks.
logging.getLogger("keyring.backend").setLevel(logging.CRITICAL)


class KeyringEntries:
    """Entries in the keyring. Each has its own service name: Windows confuses two users of one service."""

    def __init__(self, service: str) -> None:
        self._service = service
        self.limit: int | None = WINDOWS_LIMIT if sys.platform == "win32" else None

    def get(self, name: str) -> str | None:
        """Return the text stored under that name, or None if it does not exist or there is no collection."""
        if _collection_locked() is None:
            return None  # the backend would ask the user to create a collection just to read from it
        text: str | None = self._ask("get_password", f"{self._service}:{name}", USER)
        return text

    def set(self, name: str, text: str) -> None:
        self._ask("set_password", f"{self._service}:{name}", USER, text)

    def delete(self, name: str) -> None:
        if self.get(name) is not None:
            self._ask("delete_password", f"{self._service}:{name}", USER)

    @staticmethod
    def would_ask(*, writing: bool) -> bool:
        """Return True if reading now (with `writing`: writing) would show the user a dialog; False if unknown."""
        locked = _collection_locked()
        return writing if locked is None else locked

    @staticmethod
    def _ask(question: str, *words: str) -> Any:
        """Return the result of a backend method. At this boundary, all its failures become KeyringUnavailableError."""
        try:
            backend = _backend()
            if not type(backend).__module__.startswith(UNFIT):
                return getattr(backend, question)(*words)
        except Exception as error:  # noqa: BLE001 (KeyringError, D-Bus, pywin32, OS; a configured backend is missing)
            raise _unavailable(error) from None
        raise KeyringUnavailableError("There is no keyring", NO_KEYRING, "missing")


def _collection_locked() -> bool | None:
    """Return True if the user's Secret Service collection is locked, None if there is no collection yet.

    Return False for every other keyring. At this boundary, any failure of a backend counts as not locked.
    """
    try:
        if type(_backend()).__module__ != SECRET_SERVICE:
            return False
        import secretstorage

        with closing(secretstorage.dbus_init()) as bus, suppress(secretstorage.ItemNotFoundException):
            return bool(secretstorage.Collection(bus).is_locked())
        return None
    except Exception as error:  # noqa: BLE001 (its text is not shown, as in _unavailable)
        log.debug("Cannot tell whether the keyring is locked: %s", type(error).__name__)
        return False


def _backend() -> Any:
    """Return the backend that keyring chooses now. It may be UNFIT.

    keyring caches its candidates. While its choice is UNFIT, they are reset: the Secret Service may start after us.
    """
    if sys.platform != "darwin":  # importing the macOS backend runs ldconfig, gcc and ld (15 processes)
        sys.modules.setdefault("keyring.backends.macOS.api", None)  # type: ignore[arg-type]
    import keyring
    import keyring.backend

    chosen = keyring.get_keyring()
    if not type(chosen).__module__.startswith(UNFIT):
        return chosen
    getattr(keyring.backend.get_all_keyring, "reset", lambda: None)()
    keyring.core.init_backend()
    return keyring.get_keyring()


def _unavailable(error: Exception) -> KeyringUnavailableError:
    """Return our error for a backend's error. It names only the kind of error: the text could contain the secret."""
    kind = type(error).__name__
    log.info("The keyring refused: %s", kind)
    if kind in LOCKED:
        return KeyringUnavailableError("The keyring is locked", UNLOCK, "locked")
    if kind == "NoKeyringError":
        return KeyringUnavailableError("There is no keyring", NO_KEYRING, "missing")
    return KeyringUnavailableError(f"The keyring cannot be used ({kind})"[:120], NO_KEYRING, "missing")


async def secret_service_signals() -> AsyncGenerator[None]:
    """Yield after each burst of signals. End if there is no session bus, or once it is gone."""
    if sys.platform in ("win32", "darwin") or not os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return
    try:
        await anyio.to_thread.run_sync(import_module, "jeepney.io.asyncio")  # not in the event loop
        from jeepney import MatchRule, MessageType, message_bus
        from jeepney.io.asyncio import open_dbus_connection

        connection = await open_dbus_connection("SESSION")
        try:
            begun = MatchRule(type="signal", sender=message_bus.bus_name, member="NameOwnerChanged")
            begun.add_arg_condition(0, SERVICE)
            for rule in (MatchRule(type="signal", sender=SERVICE, path_namespace=PLACE), begun):
                await connection.send(message_bus.AddMatch(rule))
            while True:
                message = await connection.receive()
                if message.header.message_type is MessageType.signal:
                    await anyio.sleep(GATHER_S)
                    yield
        finally:
            connection.writer.close()
    except (OSError, EOFError, ValueError, LookupError, RuntimeError) as error:  # all that jeepney raises for a bad bus
        log.debug("No session bus: %s", error)


PLAIN = "1:"  # prefix of a text that fits in its entry
MANIFEST = "2:"  # prefix of a manifest: {"gen", "parts", "sum"}
READS = 3  # attempts to read a text that another process is writing
GENERATIONS = 2  # alternating sets of parts: a write replaces the parts that an interrupted one left
MAX_PARTS = 10_000  # the most parts of a text; a manifest with more is not ours


class Entries(Protocol):
    """A store of short texts by name. Its methods block and raise KeyringUnavailableError."""

    limit: int | None  # UTF-16 code units of one text; None = no limit

    def get(self, name: str) -> str | None: ...
    def set(self, name: str, text: str) -> None: ...
    def delete(self, name: str) -> None:
        """Delete the text, if there is one."""

    def would_ask(self, *, writing: bool) -> bool:
        """Return True if reading now (with `writing`: writing) would show the user a dialog."""


class Records(Protocol):
    """A store of texts of any length. Its methods block and raise KeyringUnavailableError."""

    def read(self, key: str) -> str | None:
        """Return the text, or None if it is missing or incomplete."""

    def write(self, key: str, text: str) -> None:
        """Store the text. If this fails or is interrupted, the previous text remains."""

    def delete(self, key: str) -> None: ...
    def would_ask(self, *, writing: bool) -> bool:
        """Return True if reading now (with `writing`: writing) would show the user a dialog."""


class ChunkedRecords:
    """Records over Entries: a text that is too long for one entry is stored in parts, with a manifest."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def read(self, key: str) -> str | None:
        """Return the text, or None if it is missing or incomplete. Read again if another process wrote meanwhile."""
        before, head = None, self._entries.get(key)
        for _ in range(READS):
            if head == before:
                return None  # missing, or torn: a write was interrupted, or parts were deleted by hand
            if (text := self._whole(key, head)) is not None:
                return text
            before, head = head, self._entries.get(key)
        return None

    def write(self, key: str, text: str) -> None:
        old = _manifest(self._entries.get(key))
        if self._entries.limit is None or length(PLAIN + text) <= self._entries.limit:
            self._entries.set(key, PLAIN + text)
            new_slot = None
        else:
            generation = (old["gen"] if old else 0) + 1
            new_slot = generation % GENERATIONS
            parts = split(text, self._entries.limit or len(text))
            for number, part in enumerate(parts):
                self._entries.set(_part(key, new_slot, number), part)
            manifest = {"gen": generation, "parts": len(parts), "sum": _sum(text)}
            self._entries.set(key, MANIFEST + json.dumps(manifest))
        if old and old["gen"] % GENERATIONS != new_slot:
            self._drop(key, old["gen"] % GENERATIONS)

    def delete(self, key: str) -> None:
        """Delete the text, and the parts that interrupted writes left."""
        self._entries.delete(key)
        for slot in range(GENERATIONS):
            self._drop(key, slot)

    def would_ask(self, *, writing: bool) -> bool:
        return self._entries.would_ask(writing=writing)

    def _whole(self, key: str, head: str | None) -> str | None:
        if head is not None and head.startswith(PLAIN):
            return head[len(PLAIN) :]
        if (manifest := _manifest(head)) is None:
            return None
        slot = manifest["gen"] % GENERATIONS
        parts = [self._entries.get(_part(key, slot, number)) for number in range(manifest["parts"])]
        text = "".join(part or "" for part in parts)
        return text if _sum(text) == manifest["sum"] else None

    def _drop(self, key: str, slot: int) -> None:
        for number in range(MAX_PARTS):
            name = _part(key, slot, number)
            if self._entries.get(name) is None:
                return
            self._entries.delete(name)


def split(text: str, limit: int) -> list[str]:
    """Return `text` in parts of at most `limit` UTF-16 code units. No character is split, so `limit` is at least 2."""
    parts: list[str] = []
    start = size = 0
    for position, letter in enumerate(text):
        units = 2 if letter > "\uffff" else 1
        if size + units > limit:
            parts.append(text[start:position])
            start, size = position, 0
        size += units
    return [*parts, text[start:]] if start < len(text) else parts


def length(text: str) -> int:
    """Return the length in UTF-16 code units, as counted by Windows."""
    return len(text) + sum(letter > "\uffff" for letter in text)


def _part(key: str, slot: int, number: int) -> str:
    return f"{key}#{slot}.{number}"


def _sum(text: str) -> str:  # 32 hex digits are enough to detect a mixture of two texts
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _manifest(head: str | None) -> dict[str, Any] | None:
    if head is None or not head.startswith(MANIFEST):
        return None
    try:
        read: dict[str, Any] = json.loads(head[len(MANIFEST) :])
        sound = type(read["gen"]) is int and type(read["parts"]) is int and 0 <= read["parts"] <= MAX_PARTS
    except (ValueError, TypeError, KeyError):
        return None
    return read if sound and "sum" in read else None
