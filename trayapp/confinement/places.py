"""Locations of systems, toolchains, secrets and our own folders: what all confined programs may read, and what none."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from trayapp.config.files import make_folder
from trayapp.config.paths import find_paths
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
# Settings without which these programs fail. The same folders hold credentials, and hooks that must stay read-only.
READ_ALONE = (".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes")
# Below the home folder: never granted with a folder around them, only by their own name in `read` or `write`.
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
# Variables that lead to sockets of the desktop, and to keys: without them a program does not try.
LEADING_OUT = (
    "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL", "DISPLAY",
    "WAYLAND_DISPLAY", "XAUTHORITY", "ICEAUTHORITY", "SESSION_MANAGER", "DOCKER_HOST",
)  # fmt: skip
TEMPORARY = ("TMPDIR", "TMP", "TEMP")


FOLDER = "confined"  # in the cache folder


def system_paths() -> tuple[str, ...]:
    """Return the system paths that every confined program may read."""
    return DARWIN_SYSTEM if sys.platform == "darwin" else LINUX_SYSTEM


def device_paths() -> tuple[str, ...]:
    """Return the devices that every confined program may read and write."""
    return DARWIN_DEVICES if sys.platform == "darwin" else LINUX_DEVICES


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
        "UV_TOOL_DIR": f"{folder}/uv-tools",  # uvx writes there before it checks
        "PIP_CACHE_DIR": f"{folder}/pip",
    }
    browsers = f"{environ.get('XDG_CACHE_HOME') or f'{home}/.cache'}/ms-playwright"
    if "PLAYWRIGHT_BROWSERS_PATH" not in environ and os.path.isdir(browsers):
        own["PLAYWRIGHT_BROWSERS_PATH"] = browsers  # otherwise found through XDG_CACHE_HOME
    return own


def own_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders of our configuration, caches, logs and sockets, and the real path of servers.yaml."""
    paths = find_paths(environ)
    run = run_dir(dict(environ))
    folders = (paths.config_file.parent, paths.state_dir, paths.cache_dir, paths.log_dir, run, socket_folder(run))
    return tuple(dict.fromkeys(map(str, (*folders, paths.config_file, paths.lock_file))))


def scratch_folder(server: str, environ: Mapping[str, str]) -> str:
    """Return the folder for a confined server's cache and temporary files."""
    name = quote(server, safe=" ")
    name = f"%2E{name[1:]}" if name.startswith(".") else name  # a server may be called ".."
    return str(find_paths(environ).cache_dir / FOLDER / name)


def make_scratch(folder: str) -> tuple[str, str]:
    """Make the folders for a server's cache and its temporary files. Return both. Raises OSError.

    Temporary files live as long as the gateway; those of gateways that have ended are removed.
    """
    cache, temporary = os.path.join(folder, "cache"), os.path.join(folder, "tmp")
    for path in (cache, temporary):
        make_folder(Path(path))
    for left in os.listdir(temporary):
        if not left.isdecimal() or (int(left) != os.getpid() and not _runs(int(left))):
            import shutil  # with its archive modules it is half of what a first confined start loads

            shutil.rmtree(os.path.join(temporary, left), ignore_errors=True)
    mine = os.path.join(temporary, str(os.getpid()))
    with suppress(FileExistsError):
        os.mkdir(mine, mode=0o700)
    return os.path.realpath(cache), os.path.realpath(mine)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
