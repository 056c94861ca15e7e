"""The packages for Windows and macOS, as far as Linux can check them. packaging/VERIFY.md covers the rest."""

from __future__ import annotations

import ast
import plistlib
import re
from pathlib import Path

import dlls
import pytest

from devtools import macos, windows
from devtools.steps import StepFailed
from devtools.windows import TITLES, numbers, strings
from trayapp import __version__
from trayapp.service.autostart import LABEL
from trayapp.service.command_line import SHIM, TRAY, WHOLE

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
SCRIPT = (PACKAGING / "windows" / "multi-mcp.iss").read_text(encoding="utf-8")
SPEC = (PACKAGING / "multi-mcp.spec").read_text(encoding="utf-8")
SIGNED = {macos.IDENTITY: "Developer ID Application: X", macos.PROFILE: "p"}

pytestmark = pytest.mark.requirement("package-elsewhere")


@pytest.mark.parametrize("environ", [{}, {macos.IDENTITY: "X"}, {macos.PROFILE: "p"}, {macos.UNSIGNED: "yes"}])
def test_a_mac_app_without_an_identity_fails_loudly(environ: dict[str, str]) -> None:
    with pytest.raises(StepFailed, match="cannot sign the app"):
        macos.steps(Path("/b/multi-mcp.app"), Path("/o/x.dmg"), environ)


def test_a_mac_app_is_signed_then_laid_into_an_image_and_both_are_notarised_and_stapled() -> None:
    steps = macos.steps(Path("/b/multi-mcp.app"), Path("/o/x.dmg"), SIGNED)
    commands = [command[0] for command in steps]
    stapled = [command[-1] for command in steps if command[1] == "stapler"]
    assert [Path(path).name for path in stapled] == ["multi-mcp.app", "x.dmg"]
    laid = ["rm", "mkdir", "ditto", "ln", "hdiutil"]
    assert commands == [
        *("codesign", "codesign", "ditto", "xcrun", "xcrun"), *laid, *("codesign", "xcrun", "xcrun", "spctl"),
    ]  # fmt: skip
    unsigned = macos.steps(Path("/b/multi-mcp.app"), Path("/o/x.dmg"), {macos.UNSIGNED: "1"})
    assert [command[0] for command in unsigned] == laid


def test_the_mac_app_lives_in_the_menu_bar_under_the_agents_name() -> None:
    assert macos.INFO["LSUIElement"] is True
    assert macos.BUNDLE_ID == LABEL
    assert macos.INFO["CFBundleExecutable"] == TRAY
    plistlib.loads(macos.ENTITLEMENTS.read_bytes())
    plistlib.dumps(macos.INFO)


def test_a_windows_installer_without_a_signature_fails_loudly() -> None:
    with pytest.raises(StepFailed, match="cannot sign the installer"):
        windows.options(Path("b"), "1.2.3", Path("o"), {})
    assert "/DSigned" not in windows.options(Path("b"), "1.2.3", Path("o"), {windows.UNSIGNED: "1"})
    assert "/Ssigner=sign $f" in windows.options(Path("b"), "1.2.3", Path("o"), {windows.SIGN: "sign $f"})


def test_the_programs_in_the_windows_installer_are_signed_too() -> None:
    [programs] = re.findall(r'^Source: "\{#Bundle\}\\\*\.exe".*$', SCRIPT, re.MULTILINE)
    assert programs.endswith("{#Sign}")
    assert re.search(r'#ifdef Signed\n  #define Sign "signonce"\n#else', SCRIPT)


def test_children_on_windows_do_not_look_for_libraries_in_our_folder() -> None:
    class Kernel32:
        def __init__(self) -> None:
            self.folders: list[object] = []

        def SetDllDirectoryW(self, folder: object) -> None:
            self.folders.append(folder)

    kernel32 = Kernel32()
    dlls.forget_folder(kernel32)
    assert kernel32.folders == [None]  # the default, which the start program had replaced
    for name in ("multi_mcp", "multi_mcp_tray"):
        assert "dlls.forget_folder()" in (PACKAGING / "programs" / f"{name}.py").read_text(encoding="utf-8")


def test_the_version_resource_has_four_numbers_and_a_title_for_each_program() -> None:
    assert numbers("0.1.0") == (0, 1, 0, 0)
    assert numbers("2.10.3rc1") == (2, 10, 0, 0)
    assert TITLES.keys() == {WHOLE, TRAY, SHIM}
    assert strings(SHIM, __version__)["OriginalFilename"] == "multi-mcp-shim.exe"


def test_the_windows_script_installs_for_one_user_and_asks_before_it_touches_clients() -> None:
    keys = dict(re.findall(r"^(\w+)=(.*)$", SCRIPT, re.MULTILINE))
    assert keys["PrivilegesRequired"] == "lowest"
    assert "{localappdata}" in keys["DefaultDirName"]
    assert "#" not in keys["DefaultDirName"]  # no version in the path, which clients and autostart use
    assert re.search(r"Name: autostart;.*Flags: unchecked", SCRIPT)
    asked, done = SCRIPT.index("MsgBox("), SCRIPT.index("'disconnect --all'")
    assert asked < done < SCRIPT.index("EndOurs;", done)
    programs = set(re.findall(r"\{app\}\\([\w-]+)\.exe", SCRIPT))
    assert programs <= {WHOLE, TRAY, SHIM}


def test_the_verbs_that_the_windows_script_calls_exist() -> None:
    from trayapp.cli.verbs import VERBS

    called = set(re.findall(r"Parameters: \"(\w+)", SCRIPT)) | set(re.findall(r"exe'\), '(\w+)", SCRIPT))
    assert called == {"autostart", "stop", "disconnect"}
    assert called <= VERBS.keys()


def test_the_recipe_names_the_programs_that_the_program_looks_for() -> None:
    made = set(re.findall(r'^    "([\w-]+)": \("multi_mcp', SPEC, re.MULTILINE))
    assert made == {WHOLE, TRAY, SHIM}


def test_every_file_of_tests_that_the_checklist_names_exists() -> None:
    text = (PACKAGING / "VERIFY.md").read_text(encoding="utf-8")
    tests = PACKAGING.parent
    for name in re.findall(r"tests/[\w/]+", text):
        assert (tests / name).is_dir() or (tests / f"{name}.py").exists(), name


BRANCHES = {("sys", "platform"), ("os", "name")}


def asks_for_the_system(path: Path) -> bool:
    """True if the module behaves differently on different operating systems."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    asked = {
        (node.value.id, node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return bool(asked & BRANCHES)


def test_every_module_with_a_branch_for_another_system_is_in_the_checklist_with_its_tests() -> None:
    root = PACKAGING.parent
    files = {path.relative_to(root / "trayapp"): path for path in (root / "trayapp").rglob("*.py")}
    files |= {path.relative_to(root): path for path in PACKAGING.rglob("*.py")}
    asking = sorted(name.with_suffix("").as_posix() for name, path in files.items() if asks_for_the_system(path))
    text = (PACKAGING / "VERIFY.md").read_text(encoding="utf-8").partition("## Every branch")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert sorted(name for row in rows for name in re.findall(r"`([^`]+)`", row[0])) == asking
    assert all(re.search(r"tests/\w+/", row[1]) and row[2].strip() for row in rows)


def test_the_release_workflow_holds_together() -> None:
    import yaml

    flow = yaml.safe_load((PACKAGING.parent / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    jobs = flow["jobs"]
    systems = {entry["os"].split("-")[0] for entry in jobs["build"]["strategy"]["matrix"]["include"]}
    assert systems == {"ubuntu", "macos", "windows"}
    assert flow["permissions"] == {"contents": "read"}
    assert jobs["release"]["needs"] == "build"
    assert jobs["build"]["needs"] == "test"
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name)] == []
    steps = str(jobs)
    for part in ("dev.py build", "sbom-action", "attest-build-provenance", "SHA256SUMS", "demo", "--draft"):
        assert part in steps
