"""org.kde.StatusNotifierItem: picture, title, tooltip, and status on the bus, and clicks on the icon itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trayapp.tray.artwork import Pixmap
from trayapp.tray.linux.bus import Answer, Method, SessionBus
from trayapp.tray.linux.sni import description

ITEM = "org.kde.StatusNotifierItem"
# A tooltip may hold markup (specification), but panels differ. XFCE shows no tooltip that contains <br>. Plasma shows
# "&amp;" literally in a text without anything like "<", and joins the lines of a text that has it. Text without any of
# these characters looks right everywhere.
PLAIN = str.maketrans({"&": "+", "<": "‹", ">": "›"})


@dataclass(frozen=True, slots=True)
class ItemLook:
    """The visible state of the item. `title`: lines, with the headline first."""

    pixmaps: tuple[Pixmap, ...] = ()
    title: str = ""
    attention: bool = False
    visible: bool = False

    @property
    def status(self) -> str:
        """Return one of the specification's three values."""
        return "Passive" if not self.visible else "NeedsAttention" if self.attention else "Active"


class ItemService:
    """The item on the bus. `on_activate` is called on the thread that reads the bus."""

    interface = ITEM
    description = description.ITEM

    def __init__(self, bus: SessionBus, path: str, menu_path: str, name: str, on_activate: Callable[[], None]) -> None:
        self._bus, self._path, self._menu_path, self._name = bus, path, menu_path, name
        self._on_activate = on_activate
        self._look = ItemLook()
        self._lock = threading.Lock()

    def show(self, **changes: Any) -> None:
        """Change fields of the ItemLook, and signal the differences to panels. Call this from any thread."""
        with self._lock:
            before, self._look = self._look, replace(self._look, **changes)
            for member, signature, body in _signals(before, self._look):
                self._bus.emit(self._path, ITEM, member, signature, body)

    def properties(self) -> Mapping[str, tuple[str, Any]]:
        look = self._look
        headline, _, rest = look.title.partition("\n")
        pixmaps = ("a(iiay)", list(look.pixmaps))
        return {
            "Category": ("s", "ApplicationStatus"),
            "Id": ("s", self._name),
            "Title": ("s", headline or self._name),
            "Status": ("s", look.status),
            "WindowId": ("i", 0),
            "IconThemePath": ("s", ""),
            "IconName": ("s", ""),
            "IconPixmap": pixmaps,
            "OverlayIconName": ("s", ""),
            "OverlayIconPixmap": ("a(iiay)", []),
            "AttentionIconName": ("s", ""),
            "AttentionIconPixmap": pixmaps,  # some panels show nothing else while attention is needed
            "AttentionMovieName": ("s", ""),
            "IconAccessibleDesc": ("s", headline),  # libayatana's, read aloud by GNOME
            "AttentionAccessibleDesc": ("s", headline),
            "ToolTip": ("(sa(iiay)ss)", ("", [], headline.translate(PLAIN), rest.translate(PLAIN))),
            "ItemIsMenu": ("b", False),
            "Menu": ("o", self._menu_path),
        }

    def methods(self) -> Mapping[str, Method]:
        return {
            "Activate": ("ii", self._activate),
            "SecondaryActivate": ("ii", self._activate),
            "ContextMenu": ("ii", _nothing),  # the panel shows our menu itself
            "Scroll": ("is", _nothing),
            "ProvideXdgActivationToken": ("s", _nothing),
        }

    def _activate(self, x: int, y: int) -> Answer:
        self._on_activate()
        return "", ()


def _nothing(*arguments: object) -> Answer:
    return "", ()


def _signals(before: ItemLook, after: ItemLook) -> list[tuple[str, str | None, tuple[str, ...]]]:
    told: list[tuple[str, str | None, tuple[str, ...]]] = []
    if before.pixmaps != after.pixmaps:
        told += [("NewIcon", None, ()), ("NewAttentionIcon", None, ())]
    if before.title != after.title:
        told += [("NewTitle", None, ()), ("NewToolTip", None, ())]
    if before.status != after.status:
        told += [("NewStatus", "s", (after.status,))]
    return told
