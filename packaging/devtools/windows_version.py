"""The version resource of the Windows programs, which Explorer shows. Never here: other systems."""

from __future__ import annotations

from typing import Any

ENGLISH_UNICODE = "040904B0"
TITLES = {
    "multi-mcp": "multi-mcp command line",
    "multi-mcp-tray": "multi-mcp",  # shown in Task Manager and in the taskbar settings
    "multi-mcp-shim": "multi-mcp connection of an AI tool",
}


def numbers(version: str) -> tuple[int, int, int, int]:
    """Return `0.1.0` as four numbers. A part that is not a number counts as 0."""
    parts = [int(part) if part.isdecimal() else 0 for part in version.split(".")[:4]]
    first, second, third, fourth = [*parts, 0, 0, 0, 0][:4]
    return first, second, third, fourth


def strings(name: str, version: str) -> dict[str, str]:
    """Return the resource's texts by name."""
    return {
        "CompanyName": "multi-mcp authors",
        "FileDescription": TITLES[name],
        "FileVersion": version,
        "InternalName": name,
        "LegalCopyright": "MIT license",
        "OriginalFilename": f"{name}.exe",
        "ProductName": "multi-mcp",
        "ProductVersion": version,
    }


def version_info(name: str, version: str) -> Any:
    """Return PyInstaller's object for the resource. It can be imported on Windows only."""
    from PyInstaller.utils.win32 import versioninfo as v

    words = [v.StringStruct(key, value) for key, value in strings(name, version).items()]
    return v.VSVersionInfo(
        ffi=v.FixedFileInfo(filevers=numbers(version), prodvers=numbers(version)),
        kids=[
            v.StringFileInfo([v.StringTable(ENGLISH_UNICODE, words)]),
            v.VarFileInfo([v.VarStruct("Translation", [0x0409, 1200])]),
        ],
    )
