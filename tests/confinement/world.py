"""A home folder full of files that a confined server must not reach, with other programs' sockets and processes."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.confinement import hostile

PROGRAM = Path(hostile.__file__)
OTHER_UID = 1  # the user `daemon` on every system
SECRETS = {
    "ssh_key": "home/.ssh/id_rsa",
    "keyring": "home/.local/share/keyrings/login.keyring",
    "browser_profile": "home/.config/google-chrome/Default/Login Data",
    "our_token": "ours/run/endpoint.json",
    "servers_yaml": "ours/servers.yaml",
    "our_secrets": "ours/secrets.sealed",
    "shell_history": "home/.bash_history",
    "cloud_key": "home/.aws/credentials",
    "package_token": "home/.local/share/uv/credentials/credentials.toml",
    "other_project": "home/src/other/.env",
    "other_server_cache": "ours/cache/confined/other/cache/token",
    "foreign_temporary_file": "tmp/ticket",
    "claude_settings": "home/.claude.json",
}
TARGETS = {
    "bashrc": "home/.bashrc",
    "zshrc": "home/.zshrc",
    "autostart": "home/.config/autostart/x.desktop",
    "systemd_unit": "home/.config/systemd/user/x.service",
    "cron": "spool/cron/crontabs/me",
    "other_project": "home/src/other/main.py",
    "servers_yaml": "ours/servers.yaml",
    "our_cache": "ours/cache/catalog.json",
    "our_log": "ours/logs/gateway.log",
    "npx_cache": "home/.npm/_npx/abc/node_modules/x/index.js",
    "uv_cache": "home/.cache/uv/archive-v0/x.py",
    "own_program": "home/tools/server.py",
    "git_config": "home/.gitconfig",
    "ssh_authorized_keys": "home/.ssh/authorized_keys",
    "toolchain": "home/.local/bin/tool",
    "truncated": "home/src/other/truncated",
    "removed": "home/src/other/removed",
    "moved": "home/src/other/moved",
}
NOT_MADE = ("autostart", "systemd_unit", "moved", "ssh_authorized_keys")
SOCKETS = {
    "session_bus": "run/bus",
    "keyring_over_dbus": "run/keyring",
    "x11": "tmp/.X11-unix/X7",
    "wayland": "run/wayland-0",
    "ssh_agent": "tmp/ssh-x/agent.1",
    "our_socket": "ours/run/gateway.sock",
    "systemd": "run/systemd/private",
}


def _answer_all(listener: socket.socket) -> None:
    """Send `hush` to each peer that connects, until the listener is closed."""
    with suppress(OSError):
        while True:
            made, _ = listener.accept()
            with made:
                made.sendall(b"hush")
                made.settimeout(5)
                with suppress(OSError):
                    made.recv(100)


def _echo(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            words, address = listener.recvfrom(100)
            if not words:
                return  # the socket was shut down
            if not address:
                continue  # an unnamed sender, which cannot be answered
            listener.sendto(b"hush", address)


class World:
    """The files, sockets and processes around the folder `root`. `facts` describes them to the hostile server."""

    def __init__(self, root: Path, stack: ExitStack, uid: int) -> None:
        self.root = root
        self.uid = uid
        self.home = root / "home"
        self.cwd = self.home / "src" / "mine"
        self.ours = root / "ours"
        self._stack = stack
        for place in (*SECRETS.values(), *TARGETS.values(), *SOCKETS.values()):
            (root / place).parent.mkdir(parents=True, exist_ok=True)
        self.cwd.mkdir(parents=True)
        for place in SECRETS.values():
            (root / place).write_text("hush")
        for name, place in TARGETS.items():
            if name not in NOT_MADE and not (root / place).exists():
                (root / place).write_text("x")
        self.facts: dict[str, Any] = {
            "home": str(self.home),
            "cwd": str(self.cwd),
            "secrets": {name: str(root / place) for name, place in SECRETS.items()},
            "targets": {name: str(root / place) for name, place in TARGETS.items()},
            "sockets": {name: str(root / place) for name, place in SOCKETS.items()},
            "abstract": str(root),
            "gateway": os.getpid(),
        }
        self._links()
        self._sockets()
        self._processes()
        self.facts_file = self.cwd / "facts.json"
        self.facts_file.write_text(json.dumps(self.facts))
        if os.geteuid() == 0:
            for folder, _, files in os.walk(root):
                for path in (folder, *(os.path.join(folder, name) for name in files)):
                    if path != self.facts["setuid_program"]:
                        os.chown(path, uid, uid, follow_symlinks=False)

    def _links(self) -> None:
        link = self.cwd / "before"
        link.symlink_to(self.facts["secrets"]["ssh_key"])
        self.facts["link_before"] = str(link)
        program = self.cwd / "id"  # in the working folder, where the confined process may run programs
        shutil.copy("/usr/bin/id", program)
        if os.geteuid() == 0:
            os.chown(program, OTHER_UID, OTHER_UID)
        program.chmod(0o4755)
        self.facts |= {"setuid_program": str(program), "setuid_uid": os.stat(program).st_uid}
        for path in (self.facts["secrets"]["ssh_key"], str(self.home / ".ssh")):
            descriptor = os.open(path, os.O_RDONLY)
            os.set_inheritable(descriptor, True)
            self._stack.callback(os.close, descriptor)
        name = f"/dev/shm/multi-mcp-test-{os.getpid()}-{self.root.name}"
        Path(name).write_text("hush")
        if os.geteuid() == 0:
            os.chown(name, self.uid, self.uid)
        self._stack.callback(os.unlink, name)
        self.facts["shared_memory_file"] = name

    def _sockets(self) -> None:
        for name in ("tcp", "gateway_port"):
            listener = self._serve(socket.socket(), _answer_all, ("127.0.0.1", 0))
            self.facts[name] = listener.getsockname()[1]
        udp = self._serve(socket.socket(type=socket.SOCK_DGRAM), _echo, ("127.0.0.1", 0))
        self.facts["udp"] = udp.getsockname()[1]
        for path in self.facts["sockets"].values():
            self._serve(socket.socket(socket.AF_UNIX), _answer_all, path)
        self._serve(socket.socket(socket.AF_UNIX), _answer_all, "\0" + self.facts["abstract"])
        datagram = str(self.root / "run" / "notify")
        self._serve(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), _echo, datagram)
        self.facts["sockets"]["datagram"] = datagram

    def _serve(self, made: socket.socket, work: Callable[[socket.socket], None], address: Any) -> socket.socket:
        made.bind(address)
        if made.type == socket.SOCK_STREAM:
            made.listen()
        if made.family == socket.AF_UNIX and not address.startswith("\0"):
            os.chmod(address, 0o777)
        thread = threading.Thread(target=work, args=(made,), daemon=True)
        thread.start()

        def end() -> None:
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
            made.close()

        self._stack.callback(end)
        return made

    def _processes(self) -> None:
        """Start another server of the same user, with a secret in its environment, and create shared memory."""
        code = "import ctypes,sys;b=ctypes.c_int();print(ctypes.addressof(b),flush=True);sys.stdin.read(1)"
        command = ["/usr/bin/python3", "-I", "-c", code] if self.uid != os.geteuid() else [sys.executable, "-c", code]
        victim = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"TOKEN": "hush"},
            user=self.uid if self.uid != os.geteuid() else None,
            group=self.uid if self.uid != os.geteuid() else None,
        )
        self._stack.enter_context(victim)
        self._stack.callback(victim.kill)
        assert victim.stdout is not None
        self.facts |= {"victim": victim.pid, "address": int(victim.stdout.readline())}
        libc = ctypes.CDLL(None, use_errno=True)
        self.facts["shm_key"] = 0x4D000000 | os.getpid()
        made = libc.shmget(self.facts["shm_key"], 4096, 0o1666)
        assert made >= 0
        self._stack.callback(libc.shmctl, made, 0, None)

    def environment(self) -> dict[str, str]:
        """Return the environment in which a gateway of this user would run."""
        return {
            "HOME": str(self.home),
            "MULTI_MCP_HOME": str(self.ours),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.facts['sockets']['session_bus']}",
            "WAYLAND_DISPLAY": self.facts["sockets"]["wayland"],
        }


@contextmanager
def made_world(uid: int | None = None) -> Iterator[World]:
    """Yield a new world. Its folder is below /tmp, because the path of a socket must be short."""
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="mmc-"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        root.chmod(0o755)
        yield World(root, stack, os.geteuid() if uid is None else uid)
