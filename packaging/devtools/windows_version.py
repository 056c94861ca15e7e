"""The version resource of the Windows programs: what Explorer shows. Never here: other systems."""

from __future__ import annotations

from typing import Any

ENGLISH_UNICODE = "040904B0"
TITLES = {
    "multi-mcp": "multi-mcp command line",
    "multi-mcp-tray": "multi-mcp",  # what Task Manager and the settings of the taskbar show
    "multi-mcp-shim": "multi-mcp connection of an AI tool",
}


def numbers(version: str) -> tuple[int, int, int, int]:
    """`0.1.0` as four numbers; what is no number counts as 0."""
    parts = [int(part) if part.isdecimal() else 0 for part in version.split(".")[:4]]
    first, second, third, fourth = [*parts, 0, 0, 0, 0][:4]
    return first, second, third, fourth


def strings(name: str, version: str) -> dict[str, str]:
    """The resource's words."""
    return {
        "CompanyName": "multi-mcp authors",
        "FileDescription": TITLES[name],
        "FileVersion": version,
        "InternalName": name,
        "LegalCopyright": "MIT licence",
        "OriginalFilename": f"{name}.exe",
        "ProductName": "multi-mcp",
        "ProductVersion": version,
    }


def version_info(name: str, version: str) -> Any:
    """As PyInstaller takes it; importable on Windows only."""
    from PyInstaller.utils.win32 import versioninfo as v

    words = [v.StringStruct(key, value) for key, value in strings(name, version).items()]
    return v.VSVersionInfo(
        ffi=v.FixedFileInfo(filevers=numbers(version), prodvers=numbers(version)),
        kids=[
            v.StringFileInfo([v.StringTable(ENGLISH_UNICODE, words)]),
            v.VarFileInfo([v.VarStruct("Translation", [0x0409, 1200])]),
        ],
    )
