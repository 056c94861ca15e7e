"""The app's icon in the formats of installers (.ico, .icns, hicolor), all from the drawing in assets/.

Run inside .venv (`packaging/dev.py icons [FOLDER]`), which draws the pictures in assets/ first. Never here: drawing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from devtools.drawing import ASSETS, app_icon, write_pictures
from trayapp.tray.icons import APP

NAME = "multi-mcp"
WINDOWS = (16, 20, 24, 32, 40, 48, 64, 256)  # the sizes that Windows uses at 100 to 250 % and in Explorer
APPLE = (16, 32, 64, 128, 256, 512, 1024)  # each size also serves half of it on Retina displays
HICOLOR = (16, 22, 24, 32, 48, 64, 128, 256)  # freedesktop.org icon theme specification


def write_icon_files(folder: Path) -> list[Path]:
    """Write all files below `folder` and return their paths. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_ico(folder), _icns(folder), *_hicolor(folder / "hicolor")]


def _ico(folder: Path) -> Path:
    path = folder / f"{NAME}.ico"
    pictures = [app_icon(size) for size in WINDOWS]
    pictures[-1].save(path, sizes=[(size, size) for size in WINDOWS], append_images=pictures[:-1])
    return path


def _icns(folder: Path) -> Path:
    path = folder / f"{NAME}.icns"
    pictures = [app_icon(size) for size in APPLE]
    pictures[-1].save(path, append_images=pictures[:-1])
    return path


def _hicolor(theme: Path) -> list[Path]:
    scalable = theme / "scalable" / "apps" / f"{NAME}.svg"
    scalable.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ASSETS / f"{APP}.svg", scalable)
    return [scalable, *(_png(theme, size) for size in HICOLOR)]


def _png(theme: Path, size: int) -> Path:
    path = theme / f"{size}x{size}" / "apps" / f"{NAME}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    app_icon(size).save(path, optimize=True)
    return path


if __name__ == "__main__":
    for written in (*write_pictures(), *write_icon_files(Path(sys.argv[1]))):
        print(written)
