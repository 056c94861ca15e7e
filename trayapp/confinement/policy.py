"""The policy of one server's program: the real paths that its `confine`, working folder and arguments stand for.

The lists at the top name what every confined program may read (system files, toolchains), and the secrets, which are
granted only if `read` or `write` names them. Only `make_scratch` changes the file system.

Decisions:
- The home folder, and any folder above it, is never granted as a working folder: servers without `cwd` merely run
  there.
- In a folder that holds secrets, only the other entries are granted: those that exist when the server starts.
- Hidden entries of the home folder are never granted through a folder above them.
- A link inside a folder that the server may write to never grants access to a target outside the folder, because
  the server could have made the link.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from urllib.parse import quote

from trayapp.config.files import make_folder
from trayapp.config.paths import find_paths
from trayapp.config.programs import script_of
from trayapp.model.config import Confine
from trayapp.wire.rundir import run_dir, socket_folder

LINUX_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap",
    "/home/linuxbrew", "/sys", "/var/cache/fontconfig", "/var/lib/ca-certificates", "/var/lib/snapd",
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/run/current-system",
    # Files in /proc about the machine. A program's own entry is not among them: no rule separates it from those of
    # other programs.
    "/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/sys", "/proc/uptime",
    "/proc/version", "/proc/vmstat",
)  # fmt: skip
LINUX_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
DARWIN_SYSTEM = (
    "/System", "/Library", "/usr", "/bin", "/sbin", "/opt", "/etc", "/private/etc", "/private/var/db/timezone",
    "/private/var/db/dyld", "/var/db/dyld", "/Applications", "/nix", "/dev",
)  # fmt: skip
DARWIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")

# Below the home folder: programs that developers install there, and caches of already fetched packages.
TOOLCHAINS = (
    ".local/bin", ".local/lib", ".local/share/uv", ".local/share/pipx", ".local/share/fnm", ".local/share/mise",
    ".local/share/pnpm", ".local/share/virtualenv", ".local/pipx", ".nvm", ".fnm", ".volta", ".asdf", ".pyenv",
    ".rbenv", ".rye", ".pixi", ".sdkman", ".bun", ".deno", ".yarn", ".npm-global", ".rustup", ".cargo/bin",
    "go/bin", "go/pkg", ".dotnet", ".npm/_npx", ".npm/_cacache", ".cache/uv", ".cache/pip", ".cache/pipx",
    ".cache/ms-playwright", ".cache/puppeteer", ".cache/deno", ".cache/fontconfig", "miniconda3", "anaconda3",
    "miniforge3", "mambaforge", "bin",
    "Library/pnpm", "Library/Caches/uv", "Library/Caches/ms-playwright", "Library/Caches/fnm_multishells",
)  # fmt: skip
# Settings without which git fails. Only these files are granted, because their folders also hold credentials and hooks.
READ_ALONE = (".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes")
# Below the home folder: granted only if `read` or `write` names them, never through a folder above them.
SECRETS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
    ".password-store", ".pki", ".mozilla", ".thunderbird", ".var", "snap", ".config/gcloud", ".config/gh",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi",
    ".config/opera", ".config/autostart", ".config/systemd", ".config/Code", ".config/Cursor", ".config/Claude",
    ".config/1Password", ".config/Bitwarden", ".config/keepassxc", ".config/fish", ".config/git",
    ".local/share/keyrings", ".local/share/kwalletd", ".local/share/applications", ".cargo/credentials",
    ".cargo/credentials.toml", ".local/share/uv/credentials", ".rye/credentials", ".dotnet/corefx", ".npm-global/etc",
    ".claude", ".claude.json", ".codex", ".cursor", ".gemini", ".copilot", ".windsurf",
    ".codeium", ".continue", ".vscode", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".xprofile", ".xsessionrc", ".xinitrc", ".pam_environment",
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".vimrc",
    "Library/Keychains", "Library/Cookies", "Library/LaunchAgents", "Library/Safari", "Library/Mail",
    "Library/Messages", "Library/Application Support",
)  # fmt: skip
# Variables with the addresses of the desktop's sockets and of key agents. Without them, programs do not try to connect.
LEADING_OUT = (
    "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL", "DISPLAY",
    "WAYLAND_DISPLAY", "XAUTHORITY", "ICEAUTHORITY", "SESSION_MANAGER", "DOCKER_HOST",
)  # fmt: skip
TEMPORARY = ("TMPDIR", "TMP", "TEMP")


def cache_environment(folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give a program its own cache, below `folder`.

    They cover package caches, too: other programs run what is in the user's caches, so no confined program may write
    there.
    """
    home = environ.get("HOME") or os.path.expanduser("~")
    own = {
        "XDG_CACHE_HOME": folder,
        "npm_config_cache": f"{folder}/npm",
        "UV_CACHE_DIR": f"{folder}/uv",
        "UV_TOOL_DIR": f"{folder}/uv-tools",  # uvx writes there before it checks which tools are installed
        "PIP_CACHE_DIR": f"{folder}/pip",
    }
    browsers = f"{environ.get('XDG_CACHE_HOME') or f'{home}/.cache'}/ms-playwright"
    if "PLAYWRIGHT_BROWSERS_PATH" not in environ and os.path.isdir(browsers):
        own["PLAYWRIGHT_BROWSERS_PATH"] = browsers  # by default below XDG_CACHE_HOME, which changes here
    return own


def own_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return our own paths: the configuration, state, cache, log and socket folders, servers.yaml and its lock file."""
    paths = find_paths(environ)
    run = run_dir(dict(environ))
    folders = (paths.config_file.parent, paths.state_dir, paths.cache_dir, paths.log_dir, run, socket_folder(run))
    return tuple(dict.fromkeys(map(str, (*folders, paths.config_file, paths.lock_file))))


def scratch_folder(server: str, environ: Mapping[str, str]) -> str:
    """Return the folder for a confined server's cache and temporary files."""
    name = quote(server, safe=" ")
    name = f"%2E{name[1:]}" if name.startswith(".") else name  # a server may be called ".."
    return str(find_paths(environ).cache_dir / "confined" / name)


def make_scratch(folder: str) -> tuple[str, str]:
    """Make the folders for a server's cache and its temporary files. Return both real paths. Raises OSError.

    Temporary files live as long as their gateway. Files of gateways that have ended are removed.
    """
    cache, temporary = os.path.join(folder, "cache"), os.path.join(folder, "tmp")
    for path in (cache, temporary):
        make_folder(Path(path))
    for left in os.listdir(temporary):
        if not left.isdecimal() or (int(left) != os.getpid() and not _runs(int(left))):
            import shutil  # imported late, as in bubblewrap.py

            shutil.rmtree(os.path.join(temporary, left), ignore_errors=True)
    mine = os.path.join(temporary, str(os.getpid()))
    with suppress(FileExistsError):
        os.mkdir(mine, mode=0o700)
    return os.path.realpath(cache), os.path.realpath(mine)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


MOST_ENTRIES = 2000  # limit on entries to examine in a folder granted piece by piece; more would slow each start
_CODE = re.compile(r"\.(?:pyz?|[cm]?[jt]sx?|sh|rb|php|pl|jar|lua)", re.IGNORECASE)
_FIRST_LINE = 256  # bytes that Linux reads of a script's first line
_PROJECT = ("package.json", "pyproject.toml", "pyvenv.cfg", ".git", "setup.py")
_PARTS = re.compile(r"[=,]")
_ASKS_KERNEL = sys.platform == "linux" and os.path.isdir("/proc/self/fd")


@dataclass(frozen=True)
class Program:
    """The program to confine: `argv[0]` is absolute, `env` is its environment.

    `own`: our own folders, which are never granted. `scratch`: the folders made for this server (cache, temporary
    files). `package`: the folder of a locked package or an unpacked bundle, which the server may only read.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(repr=False)
    own: tuple[str, ...]
    scratch: tuple[str, ...]
    package: str | None = None

    @cached_property
    def home(self) -> str:
        """Return the real path of the home folder."""
        return os.path.realpath(self.env.get("HOME") or os.path.expanduser("~"))


@dataclass(frozen=True, slots=True)
class Policy:
    """Real paths of files, or of folders with all their contents, and the network access."""

    read: tuple[str, ...]  # includes the right to execute
    write: tuple[str, ...]  # includes the right to read
    devices: tuple[str, ...]
    network: bool | tuple[str, ...]
    sockets: bool
    secrets: tuple[str, ...] = ()  # never granted merely because the server tried to access them

    @property
    def roots(self) -> list[str]:
        """Return all granted paths, outer folders first."""
        return sorted((*self.write, *self.read, *self.devices), key=len)

    def is_secret(self, path: str) -> bool:
        """Return True if a real path is a secret, is inside one or holds one."""
        return any(is_inside(path, one) or is_inside(one, path) for one in self.secrets)

    def allows(self, path: str, *, write: bool) -> bool:
        """Return True if a real path may be read or, with `write`, also written."""
        if path in self.devices or any(is_inside(path, one) for one in self.write):
            return True
        return not write and any(is_inside(path, one) for one in self.read)


class LinkToSecretError(Exception):
    """Raised when a granted file is a hard link to a secret. `path`: its granted name, `secret`: its other name."""

    def __init__(self, path: str, secret: str) -> None:
        super().__init__(f"{path} is a hard link to {secret}")
        self.path = path
        self.secret = secret


def make_policy(confine: Confine, program: Program) -> Policy:
    """Return what the program may access. Raises LinkToSecretError."""
    package = [program.package] if program.package is not None else []
    grants = _Grants(program, [*(_at(path, program) for path in (*confine.write, *confine.read)), *package])
    write = grants.given((_at(path, program) for path in confine.write), write=True)
    if not _holds(program.cwd, program.home) and not _is_in(program.cwd, package):
        write += grants.given([program.cwd], write=True)
    words = list(_paths_in(program))
    write += grants.given((path for path, is_code in words if not is_code and not _is_in(path, package)), write=True)
    read = grants.given((*package, *(_at(path, program) for path in confine.read)))
    read += grants.given(_code_root(path, program.home) for path, is_code in words if is_code)
    read += grants.toolchain()
    write += program.scratch
    _refuse_linked_secrets(write + read, grants.there)
    is_mac = sys.platform == "darwin"
    system, devices = (DARWIN_SYSTEM, DARWIN_DEVICES) if is_mac else (LINUX_SYSTEM, LINUX_DEVICES)
    return Policy(
        tuple(dict.fromkeys((*_real(system), *read))),
        tuple(dict.fromkeys(write)),
        devices,
        confine.network,
        confine.sockets,
        tuple(grants.secrets),
    )


def missing_folders(confine: Confine, program: Program) -> list[str]:
    """Return the folders in `write` that do not exist. A name with an extension counts as a file."""
    paths = [_at(path, program) for path in confine.write]
    return [path for path in paths if not os.path.lexists(path) and not os.path.splitext(path)[1]]


class _Grants:
    """The conversion of requested paths into granted ones.

    `named`: paths that are granted even if they are secrets, because they were named explicitly.
    """

    def __init__(self, program: Program, named: Iterable[str]) -> None:
        self._program = program
        secrets = {*_below(program.home, SECRETS), *program.own}
        self.there = [one for one in secrets if os.path.lexists(one)]  # existing secrets
        self.secrets = secrets | {_found(one) or os.path.realpath(one) for one in self.there}  # with their real paths
        self._named = {os.path.realpath(path) for path in named}
        self._hold_secrets = set[str]()  # the secrets that are not named, and all folders above them
        for path in self.secrets - self._named:
            while path not in self._hold_secrets:
                self._hold_secrets.add(path)
                path = os.path.dirname(path)
        # Folders that the server may write to: the path as named, and its real path
        self._writable = [(one, os.path.realpath(one)) for one in program.scratch]

    def given(self, paths: Iterable[str], *, write: bool = False) -> list[str]:
        """Return the real paths that are granted for these paths, outer folders first. `write`: for writing, too."""
        found: list[str] = []
        for path in sorted(set(paths), key=len):  # outer folders first, so that links inside them are detected
            real = _found(path)
            if real is None or self._is_secret(real) or self._leads_out(path, real):
                continue
            if write:
                self._writable.append((os.path.normpath(path), real))
            found += self._pieces(real, [MOST_ENTRIES])
        return found

    def toolchain(self) -> list[str]:
        """Return the folders that programs run from: toolchains in the home folder, the PATH, the program's own folder.

        Git's settings are included. So are the folders of a script's interpreter, unless the server may write to the
        script or the interpreter.
        """
        home, program = self._program.home, self._program
        folders = [*_below(home, TOOLCHAINS)]
        folders += [folder for folder in program.env.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
        named = [path for path in _real(folders) if not self._is_secret(path) and not is_inside(home, path)]
        real = [piece for path in named for piece in self._pieces(path, [MOST_ENTRIES])]
        real += _real(_below(home, READ_ALONE))
        starts = [program.argv[0]]
        if not any(map(self._can_write, (program.argv[0], os.path.realpath(program.argv[0])))):
            interpreter = interpreter_of(program)
            starts += [interpreter] if interpreter and not self._can_write(interpreter) else []
        for path in starts:
            runs = os.path.realpath(path)
            for start in {path} if self._leads_out(path, runs) else {path, runs}:
                root = root_of(start, home)
                real += [] if self._is_secret(root) else self._pieces(root, [MOST_ENTRIES])
        return real

    def _is_secret(self, real: str) -> bool:
        """Return True if a path is a secret or inside one, unless it is named or inside a named part of that secret."""
        while real not in self.secrets and real not in self._named and real != "/":
            real = os.path.dirname(real)
        return real in self.secrets and real not in self._named

    def _leads_out(self, path: str, real: str) -> bool:
        """Return True if `path` is inside a folder that the server may write to, but its real path is outside it."""
        path = os.path.normpath(path)
        return any(
            is_inside(path, named) and path != named and not is_inside(real, folder) for named, folder in self._writable
        )

    def _can_write(self, path: str) -> bool:
        """Return True if the server may write to a file. If so, the server could name any interpreter in it."""
        path = os.path.normpath(path)
        return any(is_inside(path, one) for pair in self._writable for one in pair)

    def _pieces(self, folder: str, left: list[int]) -> Iterator[str]:
        """Yield the folder or, if it holds secrets or the home folder, everything inside it that is safe to grant.

        Links, secrets and hidden entries of the home folder are left out. `left[0]`: how many more entries may be
        examined.
        """
        home = self._program.home
        if folder not in self._hold_secrets and not is_inside(home, folder):
            yield folder
            return
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            left[0] -= 1
            hidden = folder == home and entry.name.startswith(".") and entry.path not in self._named
            if left[0] < 0 or hidden or entry.is_symlink() or self._is_secret(entry.path):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._pieces(entry.path, left)
            else:
                yield entry.path


def _paths_in(program: Program) -> Iterator[tuple[str, bool]]:
    """Yield the existing files and folders that the arguments name, with True for source code and executables."""
    run = script_of(program.argv, lambda word: os.path.isfile(_at(word, program)))
    if run is not None:
        yield _at(run, program), True
    for word in program.argv[1:]:
        if word == run:
            continue
        for part in {word, *_PARTS.split(word)}:
            path = _at(part.removeprefix("file://"), program)
            if len(part) < 2 and part not in (".", "/"):
                continue
            if (os.sep in part or part.startswith("~") or _CODE.search(part)) or part in (".", ".."):
                try:
                    mode = os.stat(path).st_mode
                except (OSError, ValueError):
                    continue
                if stat.S_ISDIR(mode):
                    yield path, False
                elif stat.S_ISREG(mode):
                    yield path, bool(_CODE.fullmatch(os.path.splitext(path)[1])) or bool(mode & 0o111)


def _code_root(path: str, home: str) -> str:
    """Return the folder that source code needs: its node_modules, its project, or else the folder it is in.

    Return only the code's path if that folder is the home folder, is above it, or is shared with other users (/tmp).
    """
    start = folder = os.path.dirname(path)
    above, installed, _ = path.partition("/node_modules/")
    if installed:  # all of node_modules, since packages import each other
        return above + installed.rstrip("/")
    while not _holds(folder, home):
        if any(os.path.exists(os.path.join(folder, name)) for name in _PROJECT):
            return folder
        folder = os.path.dirname(folder)
    try:
        is_shared = bool(os.stat(start).st_mode & stat.S_ISVTX)  # /tmp and the like: other users have files there, too
    except OSError:
        is_shared = True
    return path if _holds(start, home) or is_shared else start


def root_of(program: str, home: str) -> str:
    """Return the folder that an installed program needs besides itself: the parent of `bin`, or its code's folder."""
    folder = os.path.dirname(program)
    above = os.path.dirname(folder)
    installed = os.path.basename(folder) == "bin" and not _holds(above, home)
    if installed and any(os.path.exists(os.path.join(above, name)) for name in ("lib", "pyvenv.cfg")):
        return above
    return _code_root(program, home)


def interpreter_of(program: Program) -> str | None:
    """Return the interpreter that the first line of a script names (`#!`), as a path, or None if there is none."""
    try:
        with open(program.argv[0], "rb") as file:
            line = file.readline(_FIRST_LINE)
    except OSError:
        return None
    words = line.removeprefix(b"#!").decode(errors="replace").split() if line.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":
        import shutil  # imported late, as in bubblewrap.py

        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return shutil.which(named[0], path=program.env.get("PATH")) if named else None
    return words[0] if words and os.path.isabs(words[0]) else None


def _refuse_linked_secrets(given: Sequence[str], secrets: Sequence[str]) -> None:
    """Raise LinkToSecretError if a granted path holds a second name (hard link) of an existing secret.

    The kernel checks only the name that is opened. The search runs only if a secret file has more than one name.
    """
    linked: dict[tuple[int, int], str] = {}
    for name in secrets:
        for path, facts in _files_of(name, 2):
            if facts.st_nlink > 1:
                linked[facts.st_dev, facts.st_ino] = path
    if not linked:
        return
    for folder in given:
        for path, facts in _files_of(folder, None):
            secret = linked.get((facts.st_dev, facts.st_ino)) if facts.st_nlink > 1 else None
            if secret is not None and path != secret:
                raise LinkToSecretError(path, secret)


def _files_of(path: str, levels: int | None) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the regular files at a path and up to `levels` below it (None: no limit). Links are not followed."""
    try:
        facts = os.lstat(path)
        if stat.S_ISREG(facts.st_mode):
            yield path, facts
        elif stat.S_ISDIR(facts.st_mode) and levels != 0:
            for name in os.listdir(path):
                yield from _files_of(os.path.join(path, name), levels - 1 if levels else None)
    except OSError:
        return


def _at(path: str, program: Program) -> str:
    """Return a path from servers.yaml as an absolute one. Links are not resolved."""
    if path == "~" or path.startswith("~/"):
        path = program.home + path[1:]
    return os.path.normpath(os.path.join(program.cwd, path))


@cache
def _below(home: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths with these names in the home folder."""
    return tuple(os.path.join(home, name) for name in names)


def _real(paths: Iterable[str]) -> list[str]:
    return [real for path in paths if (real := _found(path)) is not None]


def _found(path: str) -> str | None:
    """Return the real path, or None if nothing is there. A readlink in /proc takes a tenth of realpath's time."""
    if not _ASKS_KERNEL:
        return os.path.realpath(path) if os.path.exists(path) else None
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return os.readlink(f"/proc/self/fd/{opened}")
    finally:
        os.close(opened)


def is_inside(path: str, folder: str) -> bool:
    """Return True if a path is the folder or is inside it."""
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def _is_in(path: str, folders: Iterable[str]) -> bool:
    """Return True if a path is one of these folders or is inside one, links resolved."""
    return any(is_inside(os.path.realpath(path), os.path.realpath(folder)) for folder in folders)


def _holds(folder: str, home: str) -> bool:
    """Return True if a folder is the home folder or is above it."""
    return is_inside(home, os.path.realpath(folder))
