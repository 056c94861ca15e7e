"""Checks of this system (Python, our folders, confinement) and of its desktop (session bus, keyring, tray icons).

No check shows a dialog, so the encrypted file for secrets is opened only with a passphrase from the environment.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trayapp.config.paths import PASSPHRASE, SEALED_NAME
from trayapp.model.config import confine_of
from trayapp.model.errors import KeyringUnavailableError, MultiMcpError
from trayapp.service.checks.check import CheckContext, CheckResult, note, ok, problem
from trayapp.service.checks.servers import read_config
from trayapp.service.secrets import secret_names
from trayapp.wire.control import KEYRING, ControlClient

OLDEST_PYTHON = (3, 11)
SPACE_WANTED = 100_000_000  # bytes, many times what logs, catalogs and a new servers.yaml need
LOGS_LARGE = 500_000_000  # bytes; rotated logs stay smaller, because each server keeps at most 4 MB
PROBE = b"multi-mcp doctor\n" * 64
CONFINE = "confine.available"


def python_version(context: CheckContext) -> list[CheckResult]:
    """Report whether we support this Python version."""
    version, oldest = (".".join(map(str, numbers)) for numbers in (context.python, OLDEST_PYTHON))
    if context.python[:2] >= OLDEST_PYTHON:
        return [ok("version.python", f"Python {version}")]
    return [problem("version.python", f"Python {version} is too old", f"Install Python {oldest} or newer")]


def available(context: CheckContext) -> list[CheckResult]:
    """Report how servers are confined here. A missing mechanism is a problem if an enabled server uses it."""
    # imported late: loads the C library for Linux's system calls
    from trayapp.confinement.start import NoMechanismError, choose_mechanism

    config = read_config(context)
    found = []
    for server in config.servers.values() if config else ():
        confine = confine_of(server.confine, config.settings.confine) if config else None
        if server.command is None or server.disabled or confine is None:
            continue
        try:
            choose_mechanism(confine.network, confine.sockets)
        except NoMechanismError as error:
            state = "cannot be confined and does not start" if confine.required else "runs unconfined"
            found.append(problem(CONFINE, f"{server.name} {state}: {error.reason}", error.hint))
    if found:
        return found
    try:
        mechanism = choose_mechanism(True, False)
    except NoMechanismError as error:
        return [note(CONFINE, f"Servers cannot be confined here: {error.reason}", error.hint)]
    try:
        browsers = f" (with {choose_mechanism(True, True)} if sockets: true is set)"
    except NoMechanismError as error:
        browsers = f", but not if sockets: true is set: {error.reason}"
    return [ok(CONFINE, f"Servers can be confined with {mechanism}{browsers}")]


def space(context: CheckContext) -> list[CheckResult]:
    """Report the disks of our folders that are almost full. If none is, report the free space on one of them."""
    disks = {place.stat().st_dev: place for place in map(_nearest, _folders(context))}
    free = {place: shutil.disk_usage(place).free for place in disks.values()}
    texts = {place: f"{size / 1e6:,.0f} MB free for {place}" for place, size in free.items()}
    full = [place for place, size in free.items() if size < SPACE_WANTED]
    problems = [problem("disk.space", f"Only {texts[place]}", "Free some space") for place in full]
    return problems or [ok("disk.space", next(iter(texts.values())))]


def writable(context: CheckContext) -> list[CheckResult]:
    """Report whether our folders are writable. For a missing folder, check the permissions of its nearest parent."""
    found = [finding for folder in _folders(context) if (finding := _unwritable(folder)) is not None]
    config = context.paths.config_file
    if not found and config.exists() and not os.access(config, os.W_OK):
        what = f"{config} is read-only: changes to it cannot be saved"
        found = [note("disk.writable", what, "Make it writable for its owner")]
    return list(dict.fromkeys(found)) or [ok("disk.writable", "All folders are writable")]


def log_size(context: CheckContext) -> list[CheckResult]:
    """Report the size of the logs."""
    folder = context.paths.log_dir
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0
    message = f"The logs in {folder} take {size / 1e6:.1f} MB"
    if size > LOGS_LARGE:
        return [note("log.size", message, "Delete the logs that you do not need; the gateway creates new ones")]
    return [ok("log.size", message)]


def _folders(context: CheckContext) -> list[Path]:
    paths = context.paths
    return list(dict.fromkeys((paths.config_file.parent, paths.cache_dir, paths.log_dir, Path(context.run))))


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest folder above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _unwritable(folder: Path) -> CheckResult | None:
    place = _nearest(folder)
    try:
        if not place.is_dir():
            return problem("disk.writable", f"{place} is not a folder", "Move it away")
        if not os.access(place, os.W_OK | os.X_OK):
            is_read_only = hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY
            number = errno.EROFS if is_read_only else errno.EACCES
            raise OSError(number, os.strerror(number))
        if place == folder:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(PROBE)
                file.flush()
    except OSError as error:
        remedy = "Free some space, or check the owner and permissions of the folder"
        return problem("disk.writable", f"Cannot write to {place}: {error.strerror}", remedy)
    return None


BUS_TIMEOUT_S = 0.8  # limit for one request; a check sends at most two to a silent bus
SECRETS = "org.freedesktop.secrets"  # the Secret Service: gnome-keyring, KWallet, KeePassXC
DEFAULT_COLLECTION = "/org/freedesktop/secrets/aliases/default"
PROPERTIES = "org.freedesktop.DBus.Properties"
BUS = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")  # name, path, interface of the bus
NO_KEYRING = "New sign-ins are kept in memory only and are lost when the gateway ends"
ANSWER_TIMEOUT_S = 1.5  # time limit for the gateway's answer; less than the limit of a check
OWN_KEYRINGS = {"darwin": "The macOS Keychain is used", "win32": "The Windows Credential Manager is used"}
SEALED_FILE = "secrets.file"


def session_bus(context: CheckContext) -> list[CheckResult]:
    """Report whether this session has a bus, which the keyring and the tray icon need."""
    if context.platform != "linux":
        return []
    if _has_bus(context.environ):
        return [ok("bus.session", "A session bus is available")]
    remedy = "Log in to a desktop, or run everything in: dbus-run-session"
    return [note("bus.session", "There is no session bus, so no tray icon and no keyring", remedy)]


def keyring(context: CheckContext) -> list[CheckResult]:
    """Report the state of the store for secrets, as seen by a running gateway if there is one. Show no dialog."""
    code = "keyring.available"
    config = read_config(context)
    state = gateways_keyring(context)
    if state is not None:
        if error := state["error"]:
            return [note(code, f"{error['title']}. {NO_KEYRING}", error["hint"])]
        return [ok(code, "The gateway can store sign-ins and secrets")]
    if config is not None and config.settings.token_store == "file":
        text = "Sign-ins and secrets are in an encrypted file (token_store: file)"
        if context.environ.get(PASSPHRASE):
            return [ok(code, f"{text}, opened by {PASSPHRASE}")]
        if context.platform in OWN_KEYRINGS or _offers(context, SECRETS):
            return [ok(code, f"{text}, whose key is in the keyring")]
        remedy = f"Set {PASSPHRASE} in the environment of the gateway"
        return [note(code, f"{text}, but nothing here can open it", remedy)]
    if context.platform in OWN_KEYRINGS:
        return [ok(code, OWN_KEYRINGS[context.platform])]
    answer = _offers(context, SECRETS)
    if answer is None:
        return [note(code, "Not checked: the session bus does not answer")]
    locked = None
    if answer and _has_owner(context.environ, SECRETS):  # the query must not start a service
        collection = "org.freedesktop.Secret.Collection"
        locked = _ask(context.environ, SECRETS, DEFAULT_COLLECTION, PROPERTIES, "Get", collection, "Locked")
    if locked == ("b", True):
        what = "The keyring is locked. Until it is unlocked, sign-ins are kept in memory only"
        return [note(code, what, "Unlock it in your password manager, or log in again")]
    if answer:
        return [ok(code, "A Secret Service is available")]
    return [note(code, f"There is no keyring. {NO_KEYRING}", "Install gnome-keyring, KWallet or KeePassXC")]


def sealed_file(context: CheckContext) -> list[CheckResult]:
    """Report the state of the encrypted file for secrets, which stays when `settings.token_store` changes."""
    path, config = context.paths.config_file.with_name(SEALED_NAME), read_config(context)
    if config is None or not path.exists():
        return []
    if config.settings.token_store != "file":
        what = f"{path} contains secrets that are not used: settings.token_store is {config.settings.token_store}"
        remedy = "To use them, set token_store: file in servers.yaml; otherwise remove that file"
        return [note(SEALED_FILE, what, remedy)]
    made_with = _key_of(path)
    if made_with is None:
        return [problem(SEALED_FILE, f"{path} is damaged", "Restore it from a backup, or remove it and sign in again")]
    answer = gateways_keyring(context)
    if answer is not None:  # the check keyring.available reports its error
        return [] if answer["error"] else [ok(SEALED_FILE, f"{path} is used")]
    if (made_with == "passphrase") != bool(context.environ.get(PASSPHRASE)):
        how, do = ("with", "Set") if made_with == "passphrase" else ("without", "Unset")
        remedy = f"{do} {PASSPHRASE} in the environment of the gateway"
        return [note(SEALED_FILE, f"{path} was created {how} a passphrase", remedy)]
    if made_with == "passphrase":
        try:
            secret_names(context.environ)
        except KeyringUnavailableError as error:
            return [note(SEALED_FILE, error.title, error.hint)]
    return [ok(SEALED_FILE, f"{path} is used")]


def gateways_keyring(context: CheckContext) -> dict[str, Any] | None:
    """Return the keyring's state as reported by a running gateway (control.KEYRING), or None if no gateway answers.

    The gateway's environment may differ from ours, so only its own answer is reliable.
    """
    try:
        with ControlClient(context.run, ANSWER_TIMEOUT_S) as client:
            answer: dict[str, Any] = client.call(KEYRING)
            return answer
    except (MultiMcpError, OSError):
        return None


def tray_host(context: CheckContext) -> list[CheckResult]:
    """Report whether a program shows tray icons."""
    code = "tray.host"
    if context.platform != "linux":
        return [ok(code, "The system shows tray icons")]
    answer = _has_owner(context.environ, "org.kde.StatusNotifierWatcher") if _has_bus(context.environ) else False
    if answer is None:
        return [note(code, "Not checked: the session bus does not answer")]
    if answer:
        return [ok(code, "A panel shows tray icons with menus")]
    remedy = (
        "On GNOME, install the extension AppIndicator; elsewhere, add a tray to the panel. All verbs work without one"
    )
    if context.environ.get("DISPLAY") and not context.environ.get("WAYLAND_DISPLAY"):
        return [note(code, "No panel here shows tray icons with menus; an XEmbed tray may show them without", remedy)]
    return [note(code, "Nothing here shows tray icons; the tray would run without an icon", remedy)]


def _key_of(path: Path) -> str | None:
    """Return the kind of key that the file names, or None if the file is unreadable or not one of ours."""
    try:
        outer = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    whole = isinstance(outer, dict) and all(isinstance(outer.get(member), str) for member in ("key", "salt", "sealed"))
    return str(outer["key"]) if whole else None


def _has_bus(environ: Mapping[str, str]) -> bool:
    runtime = environ.get("XDG_RUNTIME_DIR")
    return bool(environ.get("DBUS_SESSION_BUS_ADDRESS")) or bool(runtime and Path(runtime, "bus").exists())


def _offers(context: CheckContext, name: str) -> bool | None:
    """Return True if a bus name has an owner or can be activated, or None if that is unknown."""
    if not _has_bus(context.environ):
        return False
    if _has_owner(context.environ, name):
        return True
    activatable = _ask(context.environ, *BUS, "ListActivatableNames")
    return None if activatable is None else name in activatable


def _has_owner(environ: Mapping[str, str], name: str) -> bool | None:
    answer: bool | None = _ask(environ, *BUS, "NameHasOwner", name)
    return answer


def _ask(environ: Mapping[str, str], service: str, path: str, interface: str, method: str, *texts: str) -> Any:
    """Call a method of a D-Bus service. Return the first value of its reply, or None for an error or no reply."""
    from jeepney import DBusAddress, MessageType, new_method_call
    from jeepney.io.blocking import open_dbus_connection

    bus = environ.get("DBUS_SESSION_BUS_ADDRESS") or f"unix:path={environ.get('XDG_RUNTIME_DIR')}/bus"
    asked = new_method_call(DBusAddress(path, service, interface), method, "s" * len(texts) or None, texts)
    try:
        with open_dbus_connection(bus, auth_timeout=BUS_TIMEOUT_S) as connection:
            reply = connection.send_and_get_reply(asked, timeout=BUS_TIMEOUT_S)
    except (OSError, EOFError, ValueError, LookupError, RuntimeError):  # jeepney's errors for an unusable bus
        return None
    return reply.body[0] if reply.header.message_type is MessageType.method_return else None
