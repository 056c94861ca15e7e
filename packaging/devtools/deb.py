"""The Debian package and the archive, built from the packaged programs."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from devtools.bundle import NAME, build_environment, source_date
from devtools.places import PACKAGING, ROOT
from devtools.steps import StepFailed, run

LINUX = PACKAGING / "linux"
PROGRAMS = ("multi-mcp", "multi-mcp-tray")  # on PATH; clients start the shim by its full path
SCRIPTS = ("postinst", "prerm")
AUTHOR = "multi-mcp authors <multi-mcp@example.invalid>"


def write_texts(python: Path, work: Path) -> Path:
    """Write the man page, the completions and the licenses, and return their folder."""
    folder = work / "texts"
    run([python, PACKAGING / "devtools" / "texts.py", folder], env=build_environment(work))
    return folder


def build_deb(bundle: Path, work: Path, version: str, out: Path) -> Path:
    """Write multi-mcp_VERSION_ARCHITECTURE.deb into `out`. Raises StepFailed."""
    root = work / "deb"
    shutil.rmtree(root, ignore_errors=True)
    lay_out(bundle, work, version, root)
    architecture = asked("dpkg", "--print-architecture")
    (root / "DEBIAN").mkdir()
    size = sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir())
    values = {
        "VERSION": version, "ARCHITECTURE": architecture, "SIZE": str(-(-size // 1024)), "GLIBC": newest_glibc(bundle),
    }  # fmt: skip
    (root / "DEBIAN" / "control").write_text(filled("control", values), encoding="utf-8")
    (root / "DEBIAN" / "md5sums").write_text(md5sums(root), encoding="utf-8")
    for name in SCRIPTS:
        shutil.copyfile(LINUX / name, root / "DEBIAN" / name)
    set_modes(root)
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{NAME}_{version}_{architecture}.deb"
    run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, target], env=build_environment(work))
    return target


def lay_out(bundle: Path, work: Path, version: str, root: Path) -> None:
    """Write all files of the package below `root`, at the paths that they get on a system."""
    share = root / "usr" / "share"
    doc = share / "doc" / NAME
    texts = work / "texts"
    shutil.copytree(bundle, root / "usr" / "lib" / NAME, symlinks=True)
    (root / "usr" / "bin").mkdir(parents=True)
    for program in PROGRAMS:
        (root / "usr" / "bin" / program).symlink_to(f"../lib/{NAME}/{program}")
    shutil.copytree(work / "icons" / "hicolor", share / "icons" / "hicolor")
    files = {
        LINUX / "multi-mcp.desktop": "applications/multi-mcp.desktop",
        LINUX / "multi-mcp-add.desktop": "applications/multi-mcp-add.desktop",
        LINUX / "multi-mcp.xml": "mime/packages/multi-mcp.xml",
        LINUX / "lintian-overrides": f"lintian/overrides/{NAME}",
        texts / "completion.bash": f"bash-completion/completions/{NAME}",
        texts / "completion.zsh": f"zsh/vendor-completions/_{NAME}",
        texts / "completion.fish": f"fish/vendor_completions.d/{NAME}.fish",
    }
    for source, target in files.items():
        (share / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, share / target)
    zipped((texts / f"{NAME}.1").read_bytes(), share / "man" / "man1" / f"{NAME}.1.gz")
    (share / "man" / "man1" / f"{NAME}-tray.1.gz").symlink_to(f"{NAME}.1.gz")
    doc.mkdir(parents=True)
    license = (ROOT / "LICENSE").read_text(encoding="utf-8").strip().splitlines()
    indented = "\n".join(f" {line or '.'}" for line in license)
    (doc / "copyright").write_text(filled("copyright", {"LICENSE": indented}), encoding="utf-8")
    zipped((texts / "third-party.txt").read_bytes(), doc / "third-party.txt.gz")
    zipped((PACKAGING / "CHANGELOG.md").read_bytes(), doc / "CHANGELOG.md.gz")
    date = asked("date", "-u", "-R", "-d", f"@{source_date()}")
    changelog = f"{NAME} ({version}) unstable; urgency=low\n\n  * See CHANGELOG.md.gz.\n\n -- {AUTHOR}  {date}\n"
    zipped(changelog.encode(), doc / "changelog.gz")


def filled(name: str, values: dict[str, str]) -> str:
    """Return the text of a file in packaging/linux, with each @KEY@ replaced by its value."""
    text = (LINUX / name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def zipped(data: bytes, target: Path) -> None:
    """Write the data, gzip-compressed. The file holds no name and no time, so each build gives the same bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(data, 9, mtime=0))


def md5sums(root: Path) -> str:
    """Return the checksums of all files in the format that dpkg --verify reads."""
    files = sorted(path for path in (root / "usr").rglob("*") if path.is_file() and not path.is_symlink())
    rows = [(hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest(), path) for path in files]
    return "".join(f"{digest}  {path.relative_to(root).as_posix()}\n" for digest, path in rows)


def set_modes(root: Path) -> None:
    """Set the mode of folders and programs to 755 and of other files to 644, and all times to source_date()."""
    moment = source_date()
    for path in [root, *sorted(root.rglob("*"))]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or is_program(path) else 0o644)
        os.utime(path, (moment, moment), follow_symlinks=False)


def is_program(path: Path) -> bool:
    """Return True if a user or dpkg runs the file."""
    if path.parent.name == "DEBIAN":
        return path.name in SCRIPTS
    return path.parent.parts[-2:] == ("lib", NAME) and path.name.startswith(NAME)


def newest_glibc(bundle: Path) -> str:
    """Return the newest glibc version that any file needs. Systems with an older glibc cannot run the package."""
    files = [path for path in bundle.rglob("*") if path.is_file() and (".so" in path.name or path.parent == bundle)]
    done = subprocess.run(["objdump", "-T", *map(str, files)], capture_output=True, text=True, check=False)
    versions = {word.strip("()")[6:] for word in done.stdout.split() if word.strip("()").startswith("GLIBC_2")}
    numbers = [tuple(map(int, version.split("."))) for version in versions if version.replace(".", "").isdecimal()]
    if not numbers:
        raise StepFailed("objdump shows no glibc version", "Install binutils.")
    return ".".join(map(str, max(numbers)))


def asked(*command: str) -> str:
    """Run a program and return its output. Raises StepFailed if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise StepFailed(f"{command[0]} failed: {error}") from error
    return done.stdout.strip()


def build_archive(bundle: Path, work: Path, version: str, out: Path) -> Path:
    """Write multi-mcp-VERSION-linux-ARCHITECTURE.tar.gz: one folder that runs from anywhere.

    The folder's name has no version. The next version is unpacked over it, and the paths in clients' files and in the
    autostart entry stay valid.
    """
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{NAME}-{version}-linux-{os.uname().machine}.tar.gz"
    moment = source_date()

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = moment
        return entry

    sources = [(path, f"{NAME}/{path.relative_to(bundle)}") for path in sorted(bundle.rglob("*"))]
    texts = work / "texts"
    sources += [(path, f"{NAME}/share/{path.name}") for path in sorted(texts.iterdir())]
    picture = work / "icons" / "hicolor" / "scalable" / "apps" / f"{NAME}.svg"
    sources += [(ROOT / "LICENSE", f"{NAME}/LICENSE"), (picture, f"{NAME}/share/{NAME}.svg")]
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as pressed,
        tarfile.open(fileobj=pressed, mode="w") as archive,
    ):
        for path, name in sources:
            archive.add(path, name, recursive=False, filter=plain)
    return target
