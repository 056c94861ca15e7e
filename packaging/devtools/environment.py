"""Virtual environments: .venv, with the app installed, and bare ones.

AI tools run the program in .venv. Therefore a new environment is made beside it and replaces it once it is complete.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from devtools.places import PYPROJECT, REQUIREMENTS, ROOT, TEST_REQUIREMENTS, VENV, script
from devtools.steps import StepFailed, fingerprint, installing, is_stamped, once, run, say, stamping

PIP_INSTALL = ("-m", "pip", "install", "--quiet", "--progress-bar=off", "--no-input")


def ensure_app() -> None:
    """Install the locked requirements and this checkout into .venv, unless its stamp shows that it is current.

    A .venv whose program does not run is repaired or made again, even if its stamp is current.
    """
    wanted = _app_fingerprint()
    if is_stamped(VENV, "app", wanted) and has_program():
        return
    with installing(VENV):
        if is_stamped(VENV, "app", wanted) and (has_program() or _repaired()):  # installed meanwhile, or repaired
            return
        say("installing into .venv (once; takes a minute or two)")
        beside, before = VENV.with_name(VENV.name + ".new"), VENV.with_name(VENV.name + ".old")
        if before.exists() and not has_program():  # an earlier run was killed while it replaced .venv
            _swap(before, beside)
        say("1 of 3: a virtual environment")
        make_venv(beside)
        say(f"2 of 3: {_count(REQUIREMENTS)} required packages")
        install_locked(beside, REQUIREMENTS)
        _drop_setuptools(beside)
        say("3 of 3: multi-mcp itself")
        _swap(beside, before)
        with stamping(VENV, "app", wanted):
            _rename_inside(VENV, beside)
            try:
                _install_checkout()
            except (StepFailed, KeyboardInterrupt):
                _swap(before, beside)
                raise
        shutil.rmtree(before, ignore_errors=True)


def _repaired() -> bool:
    """Reinstall this checkout into a broken .venv, without the network. Return True if the program then runs."""
    say("repairing .venv")
    try:
        _install_checkout()
    except StepFailed:
        return False
    return has_program()


def has_program() -> bool:
    """Return True if the program in .venv runs, whatever its version."""
    try:
        done = subprocess.run([script(VENV, "multi-mcp"), "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _swap(new: Path, old: Path) -> None:
    """Move .venv to `old`, and `new` into its place. Raises StepFailed."""
    shutil.rmtree(old, ignore_errors=True)
    try:
        if VENV.exists():
            VENV.rename(old)
        if new.exists():
            new.rename(VENV)
    except OSError as error:
        raise StepFailed(
            f"cannot replace .venv: {error}", "Stop the programs that run from it: multi-mcp quit"
        ) from error


def _rename_inside(venv: Path, made_as: Path) -> None:
    """In the scripts of `venv`, replace the path `made_as`. Windows programs keep it, since they are run with -m."""
    for path in script(venv, "python").parent.iterdir():
        if path.is_file() and not path.is_symlink() and b"\0" not in (text := path.read_bytes()):
            path.write_bytes(text.replace(str(made_as).encode(), str(venv).encode()))


def _count(requirements: Path) -> int:
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return sum("==" in line and not line.startswith((" ", "#")) for line in lines)


def ensure_test_requirements() -> None:
    """Add to .venv what the tests and checks need. Call ensure_app first."""
    value = fingerprint(_app_fingerprint(), TEST_REQUIREMENTS)
    once(VENV, "test", value, lambda: install_locked(VENV, TEST_REQUIREMENTS))


def make_venv(folder: Path) -> None:
    """Replace `folder` with a new, empty virtual environment. Raises StepFailed."""
    if not can_make_venv():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise StepFailed(
            "this Python cannot create virtual environments (ensurepip is missing)",
            f"On Debian and Ubuntu: sudo apt-get install python{version}-venv (or python3-venv). "
            "Elsewhere, use a Python with ensurepip, for example from python.org or Homebrew.",
        )
    run([sys.executable, "-m", "venv", "--clear", "--prompt", ".venv", folder])


def install_locked(venv: Path, requirements: Path) -> None:
    """Install exactly the locked versions, each file verified against its hash. Raises StepFailed."""
    try:
        run([script(venv, "python"), *PIP_INSTALL, "--require-hashes", "-r", requirements])
    except StepFailed as failure:
        hint = "pip says why, above. Check the network, then run this command again"
        raise StepFailed("cannot install the required packages", hint) from failure


def can_make_venv() -> bool:
    """Return True if this Python has ensurepip: Debian's python3 lacks it until python3-venv is installed."""
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


def interpreter_mark() -> str:
    """Return a text that differs for each interpreter. An environment works only with the interpreter that made it."""
    return f"{sys.version} {sys.platform} {sys.base_prefix}"


def _drop_setuptools(venv: Path) -> None:
    # Python 3.11 installs setuptools in every environment, with a .pth file that adds 0.6 ms to each start of the shim.
    if sys.version_info < (3, 12):
        run([script(venv, "python"), "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"])


def _app_fingerprint() -> str:
    # ROOT is included because the scripts of a moved checkout point to its old folder.
    return fingerprint(interpreter_mark(), str(ROOT), PYPROJECT, REQUIREMENTS)


def _install_checkout() -> None:
    # Hatchling is locked, too: without build isolation the build downloads nothing that is not locked.
    run([script(VENV, "python"), *PIP_INSTALL, "--no-deps", "--no-build-isolation", "--no-index", "--editable", ROOT])
