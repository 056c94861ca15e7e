"""The clipboard on an X display. This process owns the selection (ICCCM 2), so no other program is needed.

service/desktop_programs copies text on Wayland, macOS and Windows.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress

import Xlib.display
import Xlib.error
import Xlib.protocol.event
import Xlib.X
import Xlib.Xatom

log = logging.getLogger(__name__)

SELECTION = "CLIPBOARD"
TEXTS = ("UTF8_STRING", "text/plain;charset=utf-8", "text/plain", "TEXT", "STRING")
X_ERRORS = (Xlib.error.XError, Xlib.error.ConnectionClosedError, OSError)
LONGEST = 200_000  # bytes; a longer text would need an incremental transfer


def own_selection(text: str, environ: Mapping[str, str]) -> bool:
    """Offer `text` for pasting until another program copies something.

    Return False if there is no display, if the display refuses, or if the text is longer than LONGEST bytes.
    """
    data = text.encode()
    if not environ.get("DISPLAY") or len(data) > LONGEST:
        return False
    try:
        owner = _Owner(environ["DISPLAY"], data)
    except Exception as error:  # noqa: BLE001 (the boundary of a library that can raise anything)
        log.info("Cannot own the selection: %s", repr(error))  # repr: a kept log record must not keep sockets open
        return False
    threading.Thread(target=owner.serve, name="selection", daemon=True).start()
    return True


class _Owner:
    """The owner of the selection for one text, with its own connection to the display.

    The constructor raises python-xlib's exceptions, or OSError if another program keeps the selection.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self._data = data
        self._display = Xlib.display.Display(name)
        self._window = self._display.screen().root.create_window(0, 0, 1, 1, 0, Xlib.X.CopyFromParent)
        self._texts = {self._display.intern_atom(text) for text in TEXTS}
        self._targets = self._display.intern_atom("TARGETS")
        selection = self._display.intern_atom(SELECTION)
        self._window.set_selection_owner(selection, Xlib.X.CurrentTime)
        if self._display.get_selection_owner(selection) != self._window:
            self._display.close()
            raise OSError("the selection has another owner")

    def serve(self) -> None:
        """Answer paste requests until another program owns the selection or the display is gone. Then disconnect."""
        with suppress(*X_ERRORS):  # the display may close at any moment
            while (event := self._display.next_event()).type != Xlib.X.SelectionClear:
                if event.type != Xlib.X.SelectionRequest:
                    continue
                client, target = event.requestor, event.target
                place = event.property or target  # clients older than ICCCM specify no property
                if target == self._targets:
                    client.change_property(place, Xlib.Xatom.ATOM, 32, [self._targets, *self._texts])
                elif target in self._texts:
                    client.change_property(place, target, 8, self._data)
                else:
                    place = Xlib.X.NONE
                told = Xlib.protocol.event.SelectionNotify(
                    time=event.time, requestor=client, selection=event.selection, target=target, property=place
                )
                client.send_event(told)
                self._display.flush()
        with suppress(*X_ERRORS):
            self._display.close()
