"""The file for sign-ins and secrets with `token_store: file`. It holds one JSON object, encrypted with AES-256-GCM.

Its key comes from a passphrase (scrypt, RFC 7914) or from the keyring. Only this module imports cryptography.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trayapp.auth.os_keyring import Entries
from trayapp.config.files import FOLDER_MODE, locked, replace_file
from trayapp.config.paths import PASSPHRASE
from trayapp.model.errors import KeyringUnavailableError, StorageError

FORM = "multi-mcp sealed file 1"
KEY_ENTRY = "sealed-file-key"  # keyring entry with the file's key, if there is no passphrase
KEY_BYTES = 32
NONCE_BYTES = 12  # the size that GCM defines; each write uses a new nonce
# The costs of scrypt: 32 MB and 0.1 s, once per start for us, once per guess for an attacker
SCRYPT = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 64 << 20}

SET_PASSPHRASE = f"Set {PASSPHRASE} in the environment of the gateway, or install a keyring to hold the file's key"


class SealedFile:
    """Records in the encrypted file. If `passphrase` is empty, the key is in `keyring`."""

    def __init__(self, path: Path, passphrase: str, keyring: Entries | None = None) -> None:
        self._path = path
        self._passphrase = passphrase
        self._keyring = keyring
        self._keys: dict[bytes, bytes] = {}  # salt -> AES key

    def read(self, key: str) -> str | None:
        return self._load().get(key)

    def write(self, key: str, text: str) -> None:
        self._change(lambda texts: {**texts, key: text})

    def delete(self, key: str) -> None:
        self._change(lambda texts: {name: text for name, text in texts.items() if name != key})

    def would_ask(self, *, writing: bool) -> bool:
        return self._keyring is not None and self._keyring.would_ask(writing=writing)

    def _change(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        try:
            with locked(self._path):
                before = self._load()
                after = change(before)
                if after != before:
                    self._save(after)
        except StorageError as error:
            raise KeyringUnavailableError(error.title, error.hint, "locked") from None

    def _load(self) -> dict[str, str]:
        """Return all texts, or {} if there is no file. A file that cannot be opened never counts as empty.

        Raises KeyringUnavailableError, even without a file if there is neither a passphrase nor a keyring for the key.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            if not self._passphrase:
                self._key_entry()
            return {}
        except OSError as error:
            raise self._refused(f"cannot be read: {error.strerror}") from None
        try:
            outer = json.loads(data)
            salt, sealed = base64.b64decode(outer["salt"]), base64.b64decode(outer["sealed"])
            by_passphrase = outer["key"] == "passphrase"
        except (ValueError, TypeError, KeyError):
            raise self._refused("is damaged") from None
        if by_passphrase != bool(self._passphrase):
            raise self._refused(f"was created {'with' if by_passphrase else 'without'} a passphrase")
        cipher, wrong = self._cipher(salt)
        try:
            opened = cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], FORM.encode() + salt)
        except (wrong, ValueError):
            raise self._refused("does not open with this passphrase or key") from None
        texts: dict[str, str] = json.loads(opened)
        return texts

    def _save(self, texts: dict[str, str]) -> None:
        salt = next(iter(self._keys), b"") or secrets.token_bytes(16)
        nonce = secrets.token_bytes(NONCE_BYTES)
        cipher, _ = self._cipher(salt)
        sealed = nonce + cipher.encrypt(nonce, json.dumps(texts).encode(), FORM.encode() + salt)
        outer = {
            "form": FORM,
            "key": "passphrase" if self._passphrase else "keyring",
            "salt": base64.b64encode(salt).decode(),
            "sealed": base64.b64encode(sealed).decode(),
        }
        try:
            self._path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            replace_file(self._path, json.dumps(outer).encode() + b"\n")
        except OSError as error:
            raise self._refused(f"cannot be written: {error.strerror}") from None

    def _cipher(self, salt: bytes) -> tuple[Any, type[Exception]]:
        """Return AES-GCM with the file's key, and the exception that it raises for a wrong key."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if salt not in self._keys:
            if self._passphrase:
                words = self._passphrase.encode("utf-8", "surrogatepass")
                key = hashlib.scrypt(words, salt=salt, dklen=KEY_BYTES, **SCRYPT)
            else:  # the keyring holds the key from the first write on
                if (kept := self._key_entry()) is None:
                    if self._path.exists():
                        raise self._refused("cannot be opened: its key is no longer in the keyring")
                    kept = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
                    self._key_entry(kept)
                key = hashlib.sha256(base64.b64decode(kept) + salt).digest()
            self._keys = {salt: key}
        return AESGCM(self._keys[salt]), InvalidTag

    def _key_entry(self, new: str | None = None) -> str | None:
        """Return the key in the keyring, or None. Store `new` there first, if given. Raises KeyringUnavailableError."""
        if self._keyring is None:
            raise KeyringUnavailableError("The encrypted file has no key", SET_PASSPHRASE, "missing")
        try:
            if new is not None:
                self._keyring.set(KEY_ENTRY, new)
            return new or self._keyring.get(KEY_ENTRY)
        except KeyringUnavailableError as error:
            raise KeyringUnavailableError(error.title, SET_PASSPHRASE, error.state) from None

    def _refused(self, why: str) -> KeyringUnavailableError:
        hint = f"Check {PASSPHRASE}, or move the file away and sign in again"
        return KeyringUnavailableError(f"{self._path} {why}", hint, "locked")
