"""The commands of packaging/dev.py: run, test, build, manifests, lock, icons, guide, pictures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from devtools.environment import ensure_app, ensure_test_requirements, has_program
from devtools.places import DIST, PACKAGING, ROOT, VENV, script
from devtools.steps import StepFailed, clean_environment, run, say

USAGE = """\
usage: python3 packaging/dev.py COMMAND

  run [ARG ...]           install into .venv (once) and start multi-mcp with these arguments
  test [PYTEST_ARG ...]   install what the tests need (once), run ruff, mypy and pytest; with arguments, only pytest
  build [FOLDER]          build the packages of this system (into dist): .deb and .tar.gz, installer, or .app and .dmg;
                          the wheel, its list of what is inside (SBOM) and checksums, too;
                          with --twice, also in another folder; fail if the two differ
  manifests HOME [FOLDER] make the manifests of AUR, Homebrew and winget (into build/manifests) for the packages in
                          FOLDER (dist), as released at HOME, the address of the repository
  icons [FOLDER]          draw the pictures in assets/ from their SVG files where these have changed, and write the
                          app's icon as .ico, .icns and PNG files (into build/icons)
  guide                   write the generated pages of packaging/guide: verbs, AI tools
  pictures                make the README's pictures from the real program; needs what the tests need
  lock [UV_ARG ...]       write the lock files again (--upgrade: with the newest versions)
"""
TWICE = "--twice"


def main(argv: Sequence[str]) -> int:
    """Run one command. Return its exit code: 0 success, 1 failed, 2 usage."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    command = COMMANDS.get(argv[0]) if argv else None
    if command is None:
        asked = bool(argv) and argv[0] in ("-h", "--help", "help")
        (sys.stdout if asked else sys.stderr).write(USAGE)
        return 0 if asked else 2
    try:
        return command(list(argv[1:]))
    except StepFailed as failure:
        say(f"error: {failure}")
        if failure.hint:
            say(failure.hint)
        return 1
    except KeyboardInterrupt:
        return 130  # as shells report a command that Ctrl-C ended


def _run(args: list[str]) -> int:
    try:
        ensure_app()
    except StepFailed as failure:  # for example without a network
        if not has_program():
            raise
        say(f"not updated: {failure}; continuing with the present .venv")
    program = script(VENV, "multi-mcp")
    with suppress(ValueError):  # use the short path that a developer would type, since the program's hints repeat it
        program = program.relative_to(Path.cwd())
    if os.name != "nt":
        os.execv(program, [str(program), *args])
    import subprocess  # Windows has no exec that keeps the console: wait for the program instead

    return subprocess.run([program, *args], check=False).returncode


def _test(args: list[str]) -> int:
    # imported here, since `run` starts faster without them
    from concurrent.futures import ThreadPoolExecutor

    from devtools.checks import run_checks
    from devtools.debian import ensure_debian_packages
    from devtools.package import ensure_packaged
    from devtools.servers import ensure_npm, ensure_pypi

    ensure_debian_packages()
    with ThreadPoolExecutor() as pool:  # downloads often wait, and PyInstaller uses only one processor
        steps = [pool.submit(ensure_npm), pool.submit(ensure_pypi)]
        ensure_app()
        ensure_test_requirements()
        if not args or any("packaged" in arg for arg in args):
            steps.append(pool.submit(ensure_packaged, script(VENV, "python")))
        return run_checks(args[1:] if args[:1] == ["--"] else args, lambda: [step.result() for step in steps])


def _build(args: list[str]) -> int:
    """Build the packages with the Python of .venv. The test requirements include PyInstaller."""
    from devtools.package import build_packages, build_twice

    build = build_twice if TWICE in args else build_packages
    folder = next((Path(arg) for arg in args if arg != TWICE), DIST)
    ensure_app()
    ensure_test_requirements()
    for path in build(script(VENV, "python"), ROOT / "build" / "package", folder):
        print(path)
    return 0


def _manifests(args: list[str]) -> int:
    from devtools.manifests import Release, write_manifests
    from devtools.package import version

    if not args:
        raise StepFailed("the address of the repository is missing", "For example: https://github.com/OWNER/multi-mcp")
    release = Release(version(), args[0].rstrip("/"), Path(args[1]) if args[1:] else DIST)
    for path in write_manifests(release, ROOT / "build" / "manifests"):
        print(path)
    return 0


def _lock(args: list[str]) -> int:
    from devtools.locks import write_locks

    write_locks(args)
    return 0


def _icons(args: list[str]) -> int:
    """Draw the icons with the Python of .venv, which has the libraries for it."""
    ensure_app()
    return _run_module("devtools.drawing", args[0] if args else ROOT / "build" / "icons")


def _guide(args: list[str]) -> int:
    """Write the guide's generated pages with the program in .venv."""
    ensure_app()
    return _run_module("devtools.guide")


def _pictures(args: list[str]) -> int:
    """Install what the tests need, then make the README's pictures."""
    from devtools.debian import ensure_debian_packages
    from devtools.servers import ensure_npm, ensure_pypi

    ensure_debian_packages()
    ensure_app()
    ensure_test_requirements()
    ensure_npm()
    ensure_pypi()
    return _run_module("tests.pictures")


def _run_module(name: str, *args: str | Path) -> int:
    run([script(VENV, "python"), "-m", name, *args], env={**clean_environment(), "PYTHONPATH": str(PACKAGING)})
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "run": _run,
    "test": _test,
    "build": _build,
    "manifests": _manifests,
    "lock": _lock,
    "icons": _icons,
    "guide": _guide,
    "pictures": _pictures,
}
