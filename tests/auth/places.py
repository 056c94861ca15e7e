"""In-memory keyring entries that imitate other systems, and a private session bus with a real gnome-keyring."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.tools import require
from trayapp.auth.os_keyring import WINDOWS_LIMIT
from trayapp.model.errors import KeyringUnavailableError

READY_S = 10.0
PASSWORD = "test"
BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={folder}/bus</listen>
  {more}
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
UNLOCKS = "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface"  # an interface that gnome-keyring has for tests
NO_DISPLAY = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_DATA_HOME")


class MemoryEntries:
    """Keyring entries held in memory."""

    limit: int | None = None

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        return self.texts.get(name)

    def set(self, name: str, text: str) -> None:
        self.texts[name] = text

    def delete(self, name: str) -> None:
        self.texts.pop(name, None)

    def would_ask(self, *, writing: bool) -> bool:
        return False


class WindowsEntries(MemoryEntries):
    """Entries limited as in the Windows Credential Manager, which refuses texts over 2,560 bytes in UTF-16."""

    limit: int | None = WINDOWS_LIMIT

    def set(self, name: str, text: str) -> None:
        if len(text.encode("utf-16-le")) > 2560:
            raise KeyringUnavailableError("CredWrite: The stub received bad data", "", "missing")
        super().set(name, text)


class DyingEntries(WindowsEntries):
    """Entries that raise KeyboardInterrupt after `writes_left` writes, as if the process were killed."""

    writes_left: int = 1 << 30

    def set(self, name: str, text: str) -> None:
        if self.writes_left <= 0:
            raise KeyboardInterrupt
        self.writes_left -= 1
        super().set(name, text)


class ForgetfulEntries(WindowsEntries):
    """Entries that drop all changes after the first `writes_left`, as if the process had been killed."""

    writes_left: int = 1 << 30

    def set(self, name: str, text: str) -> None:
        if self._happens():
            super().set(name, text)

    def delete(self, name: str) -> None:
        if self._happens():
            super().delete(name)

    def _happens(self) -> bool:
        self.writes_left -= 1
        return self.writes_left >= 0


@dataclass
class Desk:
    """A private session bus with a real gnome-keyring. `environ` is the environment for processes on that bus."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_bus(self, runtime: Path | None = None) -> None:
        """Start a session bus without any services. `runtime` becomes its XDG_RUNTIME_DIR."""
        runtime = runtime or self.folder / "run"
        runtime.mkdir(mode=0o700, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if name not in NO_DISPLAY}
        self.environ = {**kept, "HOME": str(self.folder), "XDG_RUNTIME_DIR": str(runtime)}
        config = self.folder / "bus.conf"  # has no service files, so the bus starts no programs on demand
        config.write_text(BUS_CONFIG.format(folder=runtime, more=""))
        argv = [require("dbus-daemon"), f"--config-file={config}", "--nofork", "--print-address=1"]
        bus = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environ)
        self.processes.append(bus)
        assert bus.stdout is not None
        self.environ["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().decode().strip()

    def start_keyring(self, password: str = PASSWORD) -> None:
        """Start gnome-keyring, unlocked with `password`, or locked if it is empty."""
        argv = [require("gnome-keyring-daemon"), "--foreground", "--components=secrets"]
        argv += ["--unlock"] if password else []
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        daemon = subprocess.Popen(argv, stdin=pipe, stdout=null, stderr=null, env=self.environ)
        self.processes.append(daemon)
        assert daemon.stdin is not None
        daemon.stdin.write(password.encode())
        daemon.stdin.close()
        self._await_name("org.freedesktop.secrets")

    def stop_keyring(self) -> None:
        """Kill the keyring process. Its contents remain on disk."""
        self._end(self.processes.pop())

    def lock(self) -> None:
        """Lock the keyring as another program would."""
        self._run("secretstorage.Collection(bus).lock()")

    def unlock(self, password: str = PASSWORD) -> None:
        """Unlock the keyring from another process, with its password and without a dialog."""
        self._run(f"""
from secretstorage.util import DBusAddressWrapper, format_secret, open_session
service = DBusAddressWrapper("/org/freedesktop/secrets", "{UNLOCKS}", bus)
secret = format_secret(open_session(bus), b"{password}", "text/plain")
service.call("UnlockWithMasterPassword", "o(oayays)", secretstorage.Collection(bus).collection_path, secret)
""")

    def _run(self, work: str) -> None:
        argv = [sys.executable, "-c", f"import secretstorage\nbus = secretstorage.dbus_init()\n{work}"]
        subprocess.run(argv, env=self.environ, check=True)

    def _await_name(self, name: str) -> None:
        wait = f"""
import sys, time
from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection
bus = open_dbus_connection("SESSION")
place = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
ask = new_method_call(place, "NameHasOwner", "s", ("{name}",))
end = time.monotonic() + {READY_S}
while not bus.send_and_get_reply(ask).body[0]:
    if time.monotonic() > end:
        sys.exit(1)
    time.sleep(0.01)
bus.close()
"""
        subprocess.run([sys.executable, "-c", wait], env=self.environ, check=True)

    def stop(self) -> None:
        """Kill all processes of the desk."""
        while self.processes:
            self._end(self.processes.pop())

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def desk(*, keyring: bool = True) -> Iterator[Desk]:
    """Yield a new session bus, with an unlocked keyring unless `keyring` is False."""
    require("dbus-daemon")
    folder = Path(tempfile.mkdtemp(prefix="mm-kr-", dir="/tmp"))
    made = Desk(folder)
    try:
        made.start_bus()
        if keyring:
            made.start_keyring()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Replace this process's environment until the block ends."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
