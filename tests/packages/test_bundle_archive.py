"""Bundle archives: tricks with paths, sizes and content are refused, and nothing is written."""

from __future__ import annotations

import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from tests.packages.bundles import FILE, LINK, make_archive, make_bundle, manifest
from trayapp.packages import bundle_archive
from trayapp.packages.bundle_archive import BadBundleError, is_bundle, read_archive, unpack

TRICKS = {
    "absolute": ("/etc/evil", "x", FILE),
    "two slashes": ("//host/share/evil", "x", FILE),
    "drive letter": ("C:/evil", "x", FILE),
    "drive, relative": ("C:evil", "x", FILE),
    "parent": ("../evil", "x", FILE),
    "parent inside": ("server/../../evil", "x", FILE),
    "parent, turned": ("..\\evil", "x", FILE),
    "turned": ("server\\evil", "x", FILE),
    "empty part": ("server//evil", "x", FILE),
    "point": ("server/./evil", "x", FILE),
    "link": ("link", "/etc", LINK),
    "link to a parent": ("server/link", "../..", LINK),
    "device": ("pipe", "", stat.S_IFIFO | 0o644),
    "twice": ("manifest.json", "{}", FILE),
    "twice, by case": ("Manifest.JSON", "{}", FILE),
    "twice, by dots": ("./manifest.json", "{}", FILE),
    "below a file": ("manifest.json/evil", "x", FILE),
    "device of Windows": ("server/NUL.txt", "x", FILE),
    "port of Windows": ("com1", "x", FILE),
    "end of Windows": ("server/evil. ", "x", FILE),
    "stream of Windows": ("manifest.json:evil", "x", FILE),
    "control character": ("server/evil\x1b[2J", "x", FILE),
}


@pytest.mark.requirement("bundle-safe")
@pytest.mark.parametrize("trick", TRICKS)
def test_an_archive_with_a_path_trick_is_refused_whole(trick: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = make_archive(tmp_path / "evil.mcpb", TRICKS[trick])
    with pytest.raises(BadBundleError, match="not safe to unpack"):
        unpack(read_archive(path), tmp_path / "place" / "bundle")
    assert {file.name for file in tmp_path.rglob("*")} <= {"evil.mcpb", "place"}


@pytest.mark.requirement("bundle-safe")
def test_two_spellings_of_one_name_are_refused(tmp_path: Path) -> None:
    for number, pair in enumerate((("server/\u00e9", "server/e\u0301"), ("stra\u00dfe", "STRASSE"), ("A/x", "a/X"))):
        path = make_archive(tmp_path / f"{number}.mcpb", *((name, "x", FILE) for name in pair))
        with pytest.raises(BadBundleError, match="twice"):
            read_archive(path)


@pytest.mark.requirement("bundle-safe")
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_archive(tmp_path / "bomb.mcpb", *((f"zeros/{at}", "\0" * 1_000_000, FILE) for at in range(5)))
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(bundle_archive, "LARGEST", 4_000_000)
    with pytest.raises(BadBundleError, match="files"):
        read_archive(path)
    monkeypatch.setattr(bundle_archive, "LARGEST", 2 << 30)
    monkeypatch.setattr(bundle_archive, "MOST_FILES", 5)
    with pytest.raises(BadBundleError, match="files"):
        read_archive(path)


@pytest.mark.requirement("bundle-safe")
def test_content_that_is_larger_than_its_directory_says_is_refused(tmp_path: Path) -> None:
    path = make_archive(tmp_path / "liar.mcpb", ("zeros", "\0" * 100_000, FILE))
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (10).to_bytes(4, "little")  # a false unpacked size
    path.write_bytes(data)
    with pytest.raises(BadBundleError, match="not a readable bundle"):
        unpack(read_archive(path), tmp_path / "place" / "bundle")
    assert not (tmp_path / "place" / "bundle").exists()


@pytest.mark.requirement("bundle-safe")
def test_damaged_files_are_refused(tmp_path: Path) -> None:
    whole = make_bundle(tmp_path / "whole.mcpb", manifest()).read_bytes()
    for number, data in enumerate((b"", b"PK\x03\x04", whole[: len(whole) // 2], b"no zip", whole[:60] + b"\0" * 60)):
        path = tmp_path / f"{number}.mcpb"
        path.write_bytes(data)
        assert is_bundle(path)
        with pytest.raises(BadBundleError):
            read_archive(path)
    with zipfile.ZipFile(tmp_path / "other.mcpb", "w") as archive:
        archive.writestr("inner/manifest.json", "{}")
    with pytest.raises(BadBundleError, match="has no manifest"):
        read_archive(tmp_path / "other.mcpb")
    with zipfile.ZipFile(tmp_path / "other.mcpb", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("manifest.json", "{}")
    with pytest.raises(BadBundleError, match="its compression is not supported"):
        read_archive(tmp_path / "other.mcpb")


@pytest.mark.requirement("bundle-exact")
def test_a_file_that_changed_after_it_was_shown_is_not_unpacked(tmp_path: Path) -> None:
    path = make_bundle(tmp_path / "demo.mcpb", manifest())
    shown = read_archive(path)
    make_bundle(path, manifest(), {"server/evil.py": "evil"})
    with pytest.raises(BadBundleError, match="has changed since it was shown"):
        unpack(shown, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.requirement("bundle-exact")
def test_programs_stay_programs_and_a_signature_at_the_end_is_no_hindrance(tmp_path: Path) -> None:
    entries = (("bin/tool", "#!/bin/sh\n", stat.S_IFREG | 0o755), ("bin/empty/", "", stat.S_IFDIR | 0o755))
    path = make_archive(tmp_path / "demo.mcpb", *entries)
    with path.open("ab") as file:
        file.write(b"MCPB_SIG_V1" + b"\1" * 200 + b"MCPB_SIG_END")
    bundle = read_archive(path)
    unpack(bundle, tmp_path / "bundle")
    unpack(bundle, tmp_path / "bundle")  # the folder already exists
    assert (tmp_path / "bundle/bin/tool").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "bundle/bin/empty").is_dir()
    assert {entry.name for entry in tmp_path.iterdir()} == {"demo.mcpb", "bundle"}
