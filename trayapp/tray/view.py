"""What is shown for a state: icon, tooltip, menu. A pure function of TrayState; the types are in tray/state.

Never here: pystray, I/O, clocks, drawing.
"""

from __future__ import annotations

from trayapp.model.child import ChildState
from trayapp.tray.state import SEPARATOR, Action, IconKind, Item, TrayState, Verb, View


def view(state: TrayState) -> View:
    """What to show for `state`; never raises, whatever names and texts the state holds."""
    kind = IconKind.HEALTHY if state.child in (ChildState.RUNNING, ChildState.ATTACHED) else IconKind.STARTING
    menu = (Item("header", f"multi-mcp: {state.child}"), SEPARATOR, Item("quit", "Quit", Action(Verb.QUIT)))
    return View(kind, f"multi-mcp: {state.child}", menu, f"multi-mcp: {state.child}")
