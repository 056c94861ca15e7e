"""Tests of the view of a state: a table of states, and properties of every state."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.test_status import SNAPSHOTS
from tests.tray.states import CALL_ASK, CLIENTS, FILE, asking, changed, items, lines, problem, running, server, snapshot
from trayapp.model.child import ChildState
from trayapp.model.errors import CommandNotApprovedError
from trayapp.model.lifecycle import State
from trayapp.model.status import CallsToday, KeyringState, SignInStatus, Snapshot
from trayapp.tray.state import texts
from trayapp.tray.state.tray_state import (
    Action,
    ClientState,
    IconKind,
    Item,
    Offered,
    Separator,
    TrayState,
    TrayView,
    Verb,
    offer_key,
)
from trayapp.tray.state.view import view

C, K = ChildState, IconKind
CONNECTED, IDLE, CONNECTING, STOPPING = State.CONNECTED, State.IDLE, State.CONNECTING, State.STOPPING
FAILED, NEEDS_AUTH, DISABLED = State.FAILED, State.NEEDS_AUTH, State.DISABLED

GITHUB = server("github", CONNECTED, 26)
LINEAR = server("linear", NEEDS_AUTH, 12)
BROKEN = server("db", FAILED, 4, "Cannot start db: no such program: my-db", "Is it installed?")
COMMAND = CommandNotApprovedError("`op read x`")
UNAPPROVED = replace(server("db", FAILED, 3, COMMAND.title, COMMAND.hint), needs_approval=True)
OFF = server("off", DISABLED, 9)
TWO = running(GITHUB, server("time", IDLE, 2))
OFFERED = (Offered("gh", "Cursor", "npx -y gh"), Offered("fs", "Zed", "fs ."))
SEVEN = running(
    GITHUB, LINEAR, BROKEN, OFF, *[server(name, IDLE, 10) for name in "abcd"], clients=["codex", "codex", "cursor"]
)
BAD_FILE = problem("The file is not YAML: mapping values are not allowed here", 12)
BAD_ENTRY = problem("Neither command nor url", 7, "db")
ODD_KEY = problem("Unknown key comand", 9, "db", fatal=False, hint="Did you mean command?")
ODD_HINT = problem(
    "Sign-ins and secrets: the encrypted file does not open with this passphrase", fatal=False,
    hint="Set MULTI_MCP_PASSPHRASE",
)  # fmt: skip
UNTRUSTED = problem("The project's servers are ignored", file="/home/ada/shop/.mcp.json", fatal=False)


def with_keyring_error(keyring: KeyringState, title: str, hint: str) -> TrayState:
    state = running(GITHUB, keyring=keyring)
    assert state.snapshot is not None
    gateway = replace(state.snapshot.gateway, keyring_error={"title": title, "hint": hint})
    return replace(state, snapshot=replace(state.snapshot, gateway=gateway))


def named(number: int, state: State = IDLE, begin: str = "server") -> list[object]:
    return [server(f"{begin}{at:03}", state, 1) for at in range(number)]


# id, state, icon, tooltip, entries of the menu ("not ...": absent, "order: ...": in this order)
ROWS: list[tuple[str, TrayState, IconKind, str, list[str]]] = [
    # -- without a gateway
    ("starting", TrayState(C.STARTING), K.STARTING, "multi-mcp: the gateway is starting",
     ["multi-mcp: the gateway is starting", "Servers > (No servers yet)", "(Reconnect all)", "(Refresh tools)",
      "Open servers.yaml", "Pause", "(Restart gateway)", "Quit"]),
    ("stopping", TrayState(C.STOPPING), K.STARTING, "multi-mcp: the gateway is stopping",
     ["(Pause)", "(Restart gateway)", "Quit"]),
    ("restarting", TrayState(C.RESTARTING), K.DOWN, "multi-mcp: the gateway stopped and is restarting",
     ["Pause", "(Restart gateway)", "not ! Retry: restart the gateway"]),
    ("restarting-why", TrayState(C.RESTARTING, error="it was killed (signal 9)"), K.DOWN,
     "multi-mcp: the gateway stopped and is restarting\nit was killed (signal 9)", []),
    ("crash-loop", TrayState(C.CRASH_LOOP), K.DOWN,
     "multi-mcp: the gateway keeps crashing\nChoose Retry in the menu, or look at the logs",
     ["! Retry: restart the gateway", "Logs and help > Gateway log", "Pause", "(Restart gateway)"]),
    ("crash-loop-why", TrayState(C.CRASH_LOOP, error="exit code 3"), K.DOWN,
     "multi-mcp: the gateway keeps crashing\nexit code 3\nChoose Retry in the menu, or look at the logs", []),
    ("paused", TrayState(C.PAUSED), K.PAUSED,
     "multi-mcp: paused, no server can be reached\nChoose Resume in the menu to continue",
     ["Resume", "not Pause", "(Restart gateway)", "(Reconnect all)", "Open servers.yaml"]),
    ("paused-with-old-snapshot", replace(SEVEN, child=C.PAUSED), K.PAUSED,
     "multi-mcp: paused, no server can be reached\nChoose Resume in the menu to continue",
     ["Servers > (No servers yet)", "not ! Sign in to linear ..."]),
    ("restarting-with-old-snapshot", replace(SEVEN, child=C.RESTARTING), K.DOWN,
     "multi-mcp: the gateway stopped and is restarting", ["Servers > (No servers yet)"]),
    ("running-silent", TrayState(C.RUNNING), K.STARTING, "multi-mcp: the gateway is starting", ["(Reconnect all)"]),
    ("attached-silent", TrayState(C.ATTACHED), K.STARTING, "multi-mcp: the gateway is starting", []),
    ("running-starting", running(GITHUB, state="starting"), K.STARTING, "multi-mcp: the gateway is starting",
     ["Servers > (No servers yet)"]),
    ("running-stopping", running(GITHUB, state="stopping"), K.STARTING, "multi-mcp: the gateway is stopping", []),
    ("running-not-understood", TrayState(C.RUNNING, error="The gateway is newer than this app"), K.DEGRADED,
     "multi-mcp: cannot read the gateway's state\nThe gateway is newer than this app", ["Restart gateway"]),
    ("hanging", replace(TWO, hangs=True), K.DOWN,
     "multi-mcp: the gateway does not answer\nChoose Restart gateway in the menu, or wait",
     ["Servers > (No servers yet)", "Restart gateway", "(Reconnect all)", "Quit"]),
    ("starting-error-cut", TrayState(C.STARTING, error="x" * 300), K.STARTING,
     f"multi-mcp: the gateway is starting\n{'x' * 57}...", []),
    # -- healthy
    ("none", running(), K.HEALTHY, "multi-mcp: no servers yet\nAdd one in servers.yaml",
     ["multi-mcp: no servers yet", "Servers > (No servers yet)", "(Reconnect all)", "(Refresh tools)"]),
    ("one", running(server("github", CONNECTED, 1)), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 1 tool",
     ["Servers > ● github: connected, 1 tool", "Reconnect all", "Refresh tools"]),
    ("idle-is-ready", TWO, K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     ["Servers > ● github: connected, 26 tools", "Servers > ○ time: asleep, starts when used, 2 tools"]),
    ("closing-is-ready", running(server("a", STOPPING)), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 3 tools",
     ["Servers > ○ a: closing, 3 tools"]),
    ("connecting-is-not", running(GITHUB, server("a", CONNECTING, 0)), K.HEALTHY,
     "multi-mcp: 1 of 2 servers ready, 26 tools\n1 server is connecting", ["Servers > … a: connecting"]),
    ("disabled-do-not-count", running(GITHUB, OFF), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 26 tools",
     ["Servers > – off: off", "Servers > – off: off > (Reconnect)", "Servers > – off: off > (Refresh tools)",
      "Servers > – off: off > [ ] Enabled", "Servers > – off: off > Show log"]),
    ("all-disabled", running(OFF), K.HEALTHY, "multi-mcp: all servers are disabled",
     ["(Reconnect all)", "(Refresh tools)", "Servers"]),
    ("attached", replace(TWO, child=C.ATTACHED), K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     ["Restart gateway (started by another program)", "Quit (the gateway keeps running)", "Pause", "not Quit"]),
    ("own-menu-of-a-server", TWO, K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     [f"Servers > ● github: connected, 26 tools > {entry}" for entry in
      ("Reconnect", "Refresh tools", "[x] Enabled", "Show log", "not Sign in ...", "not Sign out")][:4]),
    ("signed-in", running(server("exa", signed_in=True)), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 3 tools",
     ["Servers > ● exa: connected, 3 tools > Sign out", "not Servers > ● exa: connected, 3 tools > Sign in ..."]),
    ("signed-out", running(server("exa", IDLE, signed_in=False)), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 3 tools",
     ["Servers > ○ exa: asleep, starts when used, 3 tools > Sign in ...",
      "not Servers > ○ exa: asleep, starts when used, 3 tools > Sign out"]),
    ("no-sign-in-known", TWO, K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     ["not Servers > ● github: connected, 26 tools > Sign in ...",
      "not Servers > ● github: connected, 26 tools > Sign out"]),
    ("of-a-project", running(server("db@1a2b3c4d", project="/home/ada/shop")), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 3 tools",
     ["Servers > ● db: connected, 3 tools > (Only in the project shop)",
      "Servers > ● db: connected, 3 tools > [x] (Enabled)"]),
    ("old-error-of-a-healthy-server", running(server("a", IDLE, 3, "It failed once")), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 3 tools",
     ["not Servers > ○ a: asleep, starts when used, 3 tools > (It failed once)"]),
    ("big-numbers", running(*[server(f"s{at}", IDLE, 1000) for at in range(24)]), K.HEALTHY,
     "multi-mcp: 24 of 24 servers ready, 24000 tools", []),
    # -- degraded
    ("failed", running(GITHUB, BROKEN), K.DEGRADED,
     "multi-mcp: 1 of 2 servers ready, 30 tools\nCannot start db: no such program: my-db",
     ["Servers > ✗ db: failed, 4 tools", "Servers > ✗ db: failed, 4 tools > (Cannot start db: no such program: my-db)",
      "Servers > ✗ db: failed, 4 tools > (Is it installed?)", "Servers > ✗ db: failed, 4 tools > Reconnect"]),
    ("failed-without-words", running(server("db", FAILED)), K.DEGRADED,
     "multi-mcp: 0 of 1 server ready, 3 tools\ndb: No reason given", ["Servers > ✗ db: failed, 3 tools"]),
    ("failed-other-words", running(server("db", FAILED, 3, "it ended at once")), K.DEGRADED,
     "multi-mcp: 0 of 1 server ready, 3 tools\ndb: it ended at once",
     ["Servers > ✗ db: failed, 3 tools > (it ended at once)"]),
    ("two-failed", running(BROKEN, server("a", FAILED)), K.DEGRADED,
     "multi-mcp: 0 of 2 servers ready, 7 tools\na and db failed", []),
    ("many-failed", running(*named(30, FAILED)), K.DEGRADED,  # type: ignore[arg-type]
     "multi-mcp: 0 of 30 servers ready, 30 tools\nserver000, server001, server002 and 27 more failed", []),
    ("long-names-failed", running(server("a" * 50, FAILED), server("b" * 50, FAILED), server("c", FAILED)), K.DEGRADED,
     f"multi-mcp: 0 of 3 servers ready, 9 tools\n{'a' * 25}... and 2 more failed", []),
    ("file-broken", running(GITHUB, problems=[BAD_FILE]), K.DEGRADED,
     "multi-mcp: 1 of 1 server ready, 26 tools\nservers.yaml, line 12: The file is not YAML: mapping valu...",
     ["! servers.yaml, line 12: The file is not YAML: mapping va..."]),
    ("entry-broken", running(GITHUB, problems=[BAD_ENTRY]), K.DEGRADED,
     "multi-mcp: 1 of 1 server ready, 26 tools\nservers.yaml, line 7: db: Neither command nor url",
     ["! servers.yaml, line 7: db: Neither command nor url"]),
    ("problem-without-line", running(problems=[problem("servers.yaml is missing")]), K.DEGRADED,
     "multi-mcp: no servers yet\nservers.yaml: servers.yaml is missing",
     ["! servers.yaml: servers.yaml is missing"]),
    ("failed-and-file", running(BROKEN, problems=[BAD_ENTRY]), K.DEGRADED,
     "multi-mcp: 0 of 1 server ready, 4 tools\nCannot start db: no such program: my-db", []),
    # -- harmless problems
    ("odd-key", running(GITHUB, problems=[ODD_KEY]), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 26 tools",
     ["! servers.yaml, line 9: db: Unknown key comand"]),
    ("untrusted", running(GITHUB, problems=[UNTRUSTED]), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 26 tools",
     ["! .mcp.json: The project's servers are ignored"]),
    ("same-problem-twice", running(GITHUB, problems=[ODD_KEY, ODD_KEY]), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 26 tools", ["not ! 1 more problem"]),
    ("four-problems", running(problems=[problem("Odd", at, fatal=False) for at in range(1, 5)]), K.HEALTHY,
     "multi-mcp: no servers yet\nAdd one in servers.yaml", ["! servers.yaml, line 4: Odd", "not ! 1 more problem"]),
    ("nine-problems", running(problems=[problem("Odd", at, fatal=False) for at in range(1, 10)]), K.HEALTHY,
     "multi-mcp: no servers yet\nAdd one in servers.yaml",
     ["! servers.yaml, line 3: Odd", "! 6 more problems", "! 6 more problems > ! servers.yaml, line 4: Odd",
      "not ! servers.yaml, line 4: Odd"]),
    ("windows-path", running(problems=[problem("Odd", 3, file="C:\\Users\\ada\\servers.yaml", fatal=False)]),
     K.HEALTHY, "multi-mcp: no servers yet\nAdd one in servers.yaml", ["! servers.yaml, line 3: Odd"]),
    # -- attention
    ("sign-in", running(GITHUB, LINEAR), K.ATTENTION,
     "multi-mcp: 1 of 2 servers ready, 38 tools\nlinear needs a sign-in",
     ["! Sign in to linear ...", "Servers > ! linear: needs sign-in, 12 tools",
      "Servers > ! linear: needs sign-in, 12 tools > Sign in ..."]),
    ("two-sign-ins", running(LINEAR, server("exa", NEEDS_AUTH)), K.ATTENTION,
     "multi-mcp: 0 of 2 servers ready, 15 tools\nexa and linear need a sign-in",
     ["! Sign in to exa ...", "! Sign in to linear ..."]),
    ("many-sign-ins", running(*named(10, NEEDS_AUTH, "s")), K.ATTENTION,  # type: ignore[arg-type]
     "multi-mcp: 0 of 10 servers ready, 10 tools\ns000, s001, s002 and 7 more need a sign-in",
     ["! Sign in to s002 ...", "! Sign in to 7 more servers", "! Sign in to 7 more servers > ! Sign in to s009 ..."]),
    ("permissions", running(replace(GITHUB, signed_in=True, auth=SignInStatus(True, wanted="repo"))), K.ATTENTION,
     "multi-mcp: 1 of 1 server ready, 26 tools\ngithub needs more permissions",
     ["! Grant github more permissions ...", "Servers > ● github: connected, 26 tools > Grant more permissions ...",
      "Servers > ● github: connected, 26 tools > Sign out"]),
    ("permissions-unnamed", running(*(replace(server(name), auth=SignInStatus(True, wanted="")) for name in "ab")),
     K.ATTENTION, "multi-mcp: 2 of 2 servers ready, 6 tools\na and b need more permissions",
     ["! Grant a more permissions ...", "! Grant b more permissions ..."]),
    ("permissions-after-a-sign-in", running(replace(LINEAR, auth=SignInStatus(False, wanted="repo"))), K.ATTENTION,
     "multi-mcp: 0 of 1 server ready, 12 tools\nlinear needs a sign-in",
     ["! Sign in to linear ...", "not ! Grant linear more permissions ..."]),
    ("attention-over-degraded", SEVEN, K.ATTENTION,
     "multi-mcp: 5 of 7 servers ready, 82 tools\nlinear needs a sign-in\nCannot start db: no such program: my-db",
     ["multi-mcp: 5 of 7 servers ready, 82 tools"]),
    ("approval", running(changed("github")), K.ATTENTION,
     "multi-mcp: 1 of 1 server ready, 3 tools\ngithub: changed tools wait for approval",
     ["! Approve changed tools of github ..."]),
    ("many-approvals", running(*(changed(f"s{at}") for at in range(6))), K.ATTENTION,
     "multi-mcp: 6 of 6 servers ready, 18 tools\ns0, s1, s2 and 3 more: changed tools wait for approval",
     ["! Approve changed tools of 3 more servers"]),
    ("served-though-it-reads-like-an-order", running(replace(GITHUB, suspicious=("pay",))), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 26 tools",
     ["Servers > ● github: connected, 26 tools > Review 1 tool that reads like an instruction ...",
      "not ! Approve changed tools of github ..."]),
    ("approval-while-paused", replace(running(changed("github")), child=C.PAUSED), K.PAUSED,
     "multi-mcp: paused, no server can be reached\nChoose Resume in the menu to continue",
     ["not ! Approve changed tools of github ..."]),
    ("no-keyring", running(GITHUB, keyring="missing"), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 26 tools",
     ["(! Sign-ins are not kept: there is no keyring)"]),
    ("locked-keyring", running(GITHUB, keyring="locked"), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 26 tools",
     ["! Unlock the keyring ..."]),
    ("locked-keyring-that-a-server-waits-for", running(server("exa", State.KEYRING_LOCKED), keyring="locked"),
     K.ATTENTION, "multi-mcp: 0 of 1 server ready, 3 tools\nThe keyring is locked",
     ["! Unlock the keyring ...", "Servers > ! exa: keyring locked, 3 tools", "not ! Sign in to exa ..."]),
    ("encrypted-file-that-does-not-open",
     with_keyring_error("locked", "/c/secrets.sealed does not open", "Check MULTI_MCP_PASSPHRASE"), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 26 tools",
     ["! Sign-ins are not kept: /c/secrets.sealed does not open",
      "! Sign-ins are not kept: /c/secrets.sealed does not open > (Check MULTI_MCP_PASSPHRASE)",
      "! Sign-ins are not kept: /c/secrets.sealed does not open > Open servers.yaml",
      "not ! Unlock the keyring ..."]),
    ("keyring", running(GITHUB, keyring="available"), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 26 tools",
     ["not (! Sign-ins are not kept: there is no keyring)"]),
    # -- order and large numbers
    ("by-name-whatever-their-state", SEVEN, K.ATTENTION,
     "multi-mcp: 5 of 7 servers ready, 82 tools\nlinear needs a sign-in\nCannot start db: no such program: my-db",
     ["order: ! Sign in to linear ...", "order: ! db failed: no such program: my-db",
      "order: Servers > ○ a: asleep, starts when used, 10 tools", "order: Servers > ✗ db: failed, 4 tools",
      "order: Servers > ● github: connected, 26 tools", "order: Servers > ! linear: needs sign-in, 12 tools",
      "order: Servers > – off: off"]),
    ("failures-on-top-with-what-can-be-done", running(GITHUB, BROKEN), K.DEGRADED,
     "multi-mcp: 1 of 2 servers ready, 30 tools\nCannot start db: no such program: my-db",
     [f"! db failed: no such program: my-db > {entry}" for entry in
      ("(Cannot start db: no such program: my-db)", "(Is it installed?)", "Reconnect", "Show log", "Open its entry",
       "Disable")]),
    ("hints-name-no-commands-above-the-entries-that-do-it",
     running(server("db", FAILED, 3, "It ended", "Is it installed? See: multi-mcp logs db")), K.DEGRADED,
     "multi-mcp: 0 of 1 server ready, 3 tools\ndb: It ended", ["! db failed: It ended > (Is it installed?)"]),
    ("a-command-of-a-secret-is-approved-in-the-panel", running(UNAPPROVED), K.ATTENTION,
     "multi-mcp: 0 of 1 server ready, 3 tools\ndb: a command waits for approval",
     ["! Review the command for a secret of db ...",
      "Servers > ✗ db: failed, 3 tools > (The command of a secret is not approved: `op read x`)",
      "Servers > ✗ db: failed, 3 tools > (Review it on the panel's Approvals page)"]),
    ("a-server-that-is-off-waits-for-no-approval", running(GITHUB, replace(UNAPPROVED, state=DISABLED)), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 26 tools", ["not ! Review the command for a secret of db ..."]),
    ("many-commands-of-secrets", running(*[replace(UNAPPROVED, name=f"s{at}") for at in range(6)]), K.ATTENTION,
     "multi-mcp: 0 of 6 servers ready, 18 tools\ns0, s1, s2 and 3 more: a command waits for approval",
     ["! Review the commands for secrets of 3 more servers"]),
    ("hints-keep-what-no-entry-does",
     running(server("db", FAILED, 3, "It ended", "Store it with: multi-mcp secret set db"),
             server("web", FAILED, 3, "It ended", "Check its url in servers.yaml, then: multi-mcp reconnect web")),
     K.DEGRADED, "multi-mcp: 0 of 2 servers ready, 6 tools\ndb and web failed",
     ["! db failed: It ended > (Store it with: multi-mcp secret set db)",
      "! web failed: It ended > (Check its url in servers.yaml)"]),
    ("many-failures", running(*named(9, FAILED)), K.DEGRADED,  # type: ignore[arg-type]
     "multi-mcp: 0 of 9 servers ready, 9 tools\nserver000, server001, server002 and 6 more failed",
     ["! server002 failed: No reason given > Reconnect", "! 6 more servers failed",
      "! 6 more servers failed > ! server008 failed: No reason given > Disable"]),
    ("ai-tools-are-named", running(GITHUB, clients=["codex", "codex", "Zed"]), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 26 tools",
     ["(2 AI tools connected: codex and Zed)", "Quit (codex and Zed start the gateway again)"]),
    ("ai-tools-have-their-titles", replace(running(GITHUB, clients=["codex"]), clients=CLIENTS), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 26 tools",
     ["(1 AI tool connected: Codex)", "Quit (Codex starts the gateway again)"]),
    ("problem-with-a-hint", running(GITHUB, problems=[ODD_HINT]), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 26 tools",
     ["! servers.yaml: Sign-ins and secrets: the encrypted file...",
      "! servers.yaml: Sign-ins and secrets: the encrypted file... > (not open with this passphrase)",
      "! servers.yaml: Sign-ins and secrets: the encrypted file... > (Set MULTI_MCP_PASSPHRASE)",
      "! servers.yaml: Sign-ins and secrets: the encrypted file... > Open servers.yaml"]),
    ("alarming-change", running(replace(GITHUB, approvals=("pay",), findings=("orders.conceal",))), K.ATTENTION,
     "multi-mcp: 1 of 1 server ready, 26 tools\ngithub: a changed tool reads like instructions",
     ["! github: a changed tool reads like instructions ... > Show what changed"]),
    ("case-does-not-order", running(server("b"), server("A"), server("C")), K.HEALTHY,
     "multi-mcp: 3 of 3 servers ready, 9 tools",
     ["order: Servers > ● A: connected, 3 tools", "order: Servers > ● b: connected, 3 tools",
      "order: Servers > ● C: connected, 3 tools"]),
    ("25-fit", running(*named(25)), K.HEALTHY, "multi-mcp: 25 of 25 servers ready, 25 tools",  # type: ignore[arg-type]
     ["Servers > ○ server024: asleep, starts when used, 1 tool"]),
    ("70-in-groups", running(*named(68), BROKEN, OFF), K.DEGRADED,  # type: ignore[arg-type]
     "multi-mcp: 68 of 69 servers ready, 72 tools\nCannot start db: no such program: my-db",
     ["Servers > ✗ db: failed, 4 tools", "Servers > ----", "Servers > off to server015 (17)",
      "Servers > off to server015 (17) > ○ server005: asleep, starts when used, 1 tool",
      "Servers > server050 to server067 (18)",
      "not Servers > ○ server005: asleep, starts when used, 1 tool"]),
    ("70-failed", running(*named(70, FAILED)), K.DEGRADED,  # type: ignore[arg-type]
     "multi-mcp: 0 of 70 servers ready, 70 tools\nserver000, server001, server002 and 67 more failed",
     ["Servers > ✗ server024: failed, 1 tool", "Servers > server025 to server039 (15)"]),
    # -- hostile names
    ("control-characters", running(server("a\x1b[31mb\x00\nc\u202ed\u200be")), K.HEALTHY,
     "multi-mcp: 1 of 1 server ready, 3 tools", ["Servers > ● ab cde: connected, 3 tools"]),
    ("long-name", running(server("n" * 300)), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 3 tools",
     [f"Servers > ● {'n' * 25}...: connected, 3 tools"]),
    ("nothing-left-of-a-name", running(server("\u202e\u200b")), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 3 tools",
     ["Servers > ● (no name): connected, 3 tools"]),
    ("underscores-stay", running(server("my_db_server")), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 3 tools",
     ["Servers > ● my_db_server: connected, 3 tools"]),
    ("wide-letters", running(server("服" * 40)), K.HEALTHY, "multi-mcp: 1 of 1 server ready, 3 tools",
     [f"Servers > ● {'服' * 12}...: connected, 3 tools"]),
    ("error-with-escapes", running(server("a", FAILED, 3, "\x1b]0;x\x07It said\r\nno\u202e")), K.DEGRADED,
     "multi-mcp: 0 of 1 server ready, 3 tools\na: It said no", ["Servers > ✗ a: failed, 3 tools > (It said no)"]),
    # -- clients and login
    ("clients", replace(TWO, clients=CLIENTS), K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     ["AI tools > [x] Claude Code", "AI tools > [ ] Codex",
      "AI tools > [x] Cursor: update its entry (it was changed by hand)", "not AI tools > [ ] Zed",
      "AI tools > ----", "AI tools > Copy stdio command"]),
    ("servers-that-run-twice", replace(TWO, clients=CLIENTS, doubled=OFFERED), K.HEALTHY,
     "multi-mcp: 2 of 2 servers ready, 28 tools",
     [f"AI tools > Remove 2 servers from them ... > {entry}" for entry in
      ("(Cursor: gh)", "(Zed: fs)", "Remove them, with a backup of each file")]),
    ("no-clients", TWO, K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     ["AI tools > (No AI tool was found on this computer)", "AI tools > Copy stdio command"]),
    ("connected-but-gone", replace(TWO, clients=(ClientState("zed", "Zed", True, False),)), K.HEALTHY,
     "multi-mcp: 2 of 2 servers ready, 28 tools", ["AI tools > [x] Zed"]),
    ("clients-without-gateway", TrayState(C.PAUSED, clients=CLIENTS), K.PAUSED,
     "multi-mcp: paused, no server can be reached\nChoose Resume in the menu to continue",
     ["AI tools > [ ] Codex"]),
    ("login-on", replace(TWO, autostart=True), K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     ["[x] Start at login"]),
    ("login-off", replace(TWO, autostart=False), K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     ["[ ] Start at login"]),
    ("login-impossible", TWO, K.HEALTHY, "multi-mcp: 2 of 2 servers ready, 28 tools",
     ["(Start at login (not possible here))"]),
]  # fmt: skip


@pytest.mark.requirement("tray-view")
@pytest.mark.parametrize(("state", "icon", "tooltip", "entries"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_a_state_shows_this(state: TrayState, icon: IconKind, tooltip: str, entries: list[str]) -> None:
    seen = view(state)
    shown = list(lines(seen.menu))
    assert (seen.icon, seen.tooltip) == (icon, tooltip)
    assert [entry for entry in entries if entry not in shown and not entry.startswith(("not ", "order: "))] == []
    assert [entry for entry in entries if entry.startswith("not ") and entry.removeprefix("not ") in shown] == []
    ordered = [shown.index(entry.removeprefix("order: ")) for entry in entries if entry.startswith("order: ")]
    assert ordered == sorted(ordered)


def test_the_table_is_long_enough_and_has_every_icon() -> None:
    assert len(ROWS) >= 60
    assert {icon for _, _, icon, _, _ in ROWS} == set(IconKind)


@pytest.mark.requirement("pin-tray")
def test_tools_that_wait_for_an_approval_want_the_user() -> None:
    shown = view(running(replace(GITHUB, approvals=("add", "pay"))))
    assert shown.icon is IconKind.ATTENTION
    assert "! Approve changed tools of github ..." in lines(shown.menu)


@pytest.mark.parametrize("child", ChildState)
def test_every_state_of_the_process_has_a_view_with_and_without_words(child: ChildState) -> None:
    for state in (TrayState(child), TrayState(child, error="no\nline"), replace(SEVEN, child=child)):
        assert view(state).tooltip.startswith("multi-mcp: ")


def test_the_whole_menu_in_its_order() -> None:
    shown = lines(view(replace(running(GITHUB, LINEAR), clients=CLIENTS, autostart=True)).menu)
    top = [line for line in shown if " > " not in line]
    assert top == [
        "multi-mcp: 1 of 2 servers ready, 38 tools",
        "! Sign in to linear ...",
        "----",
        "Open panel",
        "Servers",
        "Reconnect all",
        "Refresh tools",
        "AI tools",
        "Open servers.yaml",
        "----",
        "Pause",
        "Restart gateway",
        "Logs and help",
        "[x] Start at login",
        "----",
        "About multi-mcp ...",
        "Quit",
    ]


# -- actions of entries ----------------------------------------------------------------------------------------------

CLICKS = [
    ("sign-in", "! Sign in to linear ...", Action(Verb.SIGN_IN, "linear")),
    ("own-sign-in", "Servers > ! linear: needs sign-in, 12 tools > Sign in ...", Action(Verb.SIGN_IN, "linear")),
    ("sign-out", "Servers > ○ exa: asleep, starts when used, 3 tools > Sign out", Action(Verb.SIGN_OUT, "exa")),
    ("reconnect", "Servers > ● github: connected, 26 tools > Reconnect", Action(Verb.RECONNECT, "github")),
    ("refresh", "Servers > ● github: connected, 26 tools > Refresh tools", Action(Verb.REFRESH, "github")),
    ("disable", "Servers > ● github: connected, 26 tools > [x] Enabled", Action(Verb.DISABLE, "github")),
    ("enable", "Servers > – off: off > [ ] Enabled", Action(Verb.ENABLE, "off")),
    ("log", "Servers > – off: off > Show log", Action(Verb.SHOW_LOG, "off")),
    ("reconnect-all", "Reconnect all", Action(Verb.RECONNECT)),
    ("refresh-all", "Refresh tools", Action(Verb.REFRESH)),
    ("panel", "Open panel", Action(Verb.OPEN_PANEL)),
    ("open", "Open servers.yaml", Action(Verb.OPEN_FILE)),
    ("problem", "! servers.yaml, line 7: db: Neither command nor url", Action(Verb.OPEN_FILE, FILE)),
    ("changes", "! Approve changed tools of github ... > Show what changed", Action(Verb.SHOW_CHANGES, "github")),
    ("approve", "! Approve changed tools of github ... > Approve what was shown", Action(Verb.APPROVE, "github")),
    ("connect", "AI tools > [ ] Codex", Action(Verb.CONNECT_CLIENT, "codex")),
    ("disconnect", "AI tools > [x] Claude Code", Action(Verb.DISCONNECT_CLIENT, "claude-code")),
    ("renew", "AI tools > [x] Cursor: update its entry (it was changed by hand)",
     Action(Verb.CONNECT_CLIENT, "cursor")),
    ("copy", "AI tools > Copy stdio command", Action(Verb.COPY_COMMAND)),
    ("state", "multi-mcp: 2 of 3 servers ready, 41 tools", Action(Verb.SHOW_STATE)),
    ("logs", "Logs and help > Gateway log", Action(Verb.SHOW_LOGS)),
    ("log-folder", "Logs and help > Log folder", Action(Verb.LOG_FOLDER)),
    ("check", "Logs and help > Check everything", Action(Verb.CHECK)),
    ("diagnostics", "Logs and help > Copy diagnostics", Action(Verb.COPY_DIAGNOSTICS)),
    ("pause", "Pause", Action(Verb.PAUSE)),
    ("restart", "Restart gateway", Action(Verb.RESTART)),
    ("login-off", "[x] Start at login", Action(Verb.AUTOSTART_OFF)),
    ("about", "About multi-mcp ...", Action(Verb.ABOUT)),
    ("quit", "Quit", Action(Verb.QUIT)),
]  # fmt: skip
EVERYTHING = replace(
    running(
        replace(GITHUB, approvals=("pay",)), LINEAR, OFF, server("exa", IDLE, signed_in=True), problems=[BAD_ENTRY]
    ),
    clients=CLIENTS,
    autostart=True,
)

FIRST = replace(running(server("sample")), offered=OFFERED)


def clicks(state: TrayState) -> dict[str, Action | None]:
    """Return the action of each entry, by its line."""
    menu = view(state).menu
    shown = [line for line in lines(menu) if not line.endswith("----")]
    return dict(zip(shown, [item.action for item in items(menu)], strict=True))


@pytest.mark.parametrize(("line", "action"), [row[1:] for row in CLICKS], ids=[row[0] for row in CLICKS])
def test_a_click_asks_for_this(line: str, action: Action) -> None:
    assert clicks(EVERYTHING)[line] == action


@pytest.mark.requirement("tray-panel-without-menu")
def test_the_state_s_notification_has_what_panels_without_menus_lack() -> None:
    assert [label for label, _ in view(SEVEN).buttons] == ["Sign in to linear", "Reconnect all", "Quit"]
    assert [label for label, _ in view(TWO).buttons] == ["Reconnect all", "Quit"]
    assert [label for label, _ in view(running()).buttons] == ["Show logs", "Quit"]
    assert [label for label, _ in view(TrayState(C.PAUSED)).buttons] == ["Resume", "Quit"]
    assert [label for label, _ in view(TrayState(C.CRASH_LOOP)).buttons] == ["Retry", "Quit"]
    for child in C:
        assert view(TrayState(child)).buttons[0][1].verb is not Verb.QUIT, "a click on the notification does the first"


def test_clicks_of_other_states() -> None:
    assert clicks(TrayState(C.CRASH_LOOP))["! Retry: restart the gateway"] == Action(Verb.RETRY)
    assert clicks(TrayState(C.PAUSED))["Resume"] == Action(Verb.RESUME)
    assert clicks(TrayState(C.PAUSED, autostart=False))["[ ] Start at login"] == Action(Verb.AUTOSTART_ON)
    assert view(TrayState(C.PAUSED)).click == Action(Verb.SHOW_STATE)


def test_a_click_on_the_icon_opens_the_panel_if_the_gateway_has_one() -> None:
    state = running(GITHUB)
    assert view(state).click == Action(Verb.SHOW_STATE)  # HTTP is switched off
    assert state.snapshot is not None
    gateway = replace(state.snapshot.gateway, http_url="http://127.0.0.1:7461/mcp")
    shown = view(replace(state, snapshot=replace(state.snapshot, gateway=gateway)))
    assert shown.click == Action(Verb.OPEN_PANEL)
    assert [label for label, _ in shown.buttons] == ["Reconnect all", "Open panel", "Quit"]


def test_every_verb_is_in_some_menu() -> None:
    states = [EVERYTHING, *(TrayState(child, autostart=False) for child in ChildState)]
    states += [
        running(keyring="locked"),
        replace(TWO, doubled=OFFERED),
        asking(CALL_ASK, replace(CALL_ASK, id="2", kind="question", url="https://a.test")),
        FIRST,
        replace(FIRST, offered=(replace(OFFERED[0], secrets=1),)),
    ]
    asked = {action.verb for state in states for action in clicks(state).values() if action is not None}
    assert asked | {Verb.SHOW_OFFER} == set(Verb)


@pytest.mark.requirement("tray-offer")
def test_servers_of_ai_tools_are_offered_with_what_they_start_and_no_longer_than_on_a_first_start() -> None:
    begin = "! Use the 2 servers of Cursor and Zed"
    shown = clicks(FIRST)
    assert [line for line in shown if line.startswith(begin)] == [
        begin, f"{begin} > (gh: npx -y gh)", f"{begin} > (fs: fs .)",
        f"{begin} > Use them", f"{begin} > Leave them where they are",
    ]  # fmt: skip
    assert shown[f"{begin} > Use them"] == Action(Verb.TAKE_OVER, offer_key(OFFERED))
    secret = replace(FIRST, offered=(OFFERED[0], replace(OFFERED[1], secrets=1)))
    assert clicks(secret)[f"{begin} > Use them, and store secrets in the keyring"] == Action(
        Verb.TAKE_OVER_HIDDEN, offer_key(secret.offered)
    )
    assert f"{begin} > Use them as they are" in clicks(secret)
    assert view(FIRST).icon is K.HEALTHY
    for state in (replace(FIRST, offered=()), replace(TWO, offered=OFFERED), TrayState(C.STARTING, offered=OFFERED)):
        assert not any("! Use the" in line for line in clicks(state))


# -- the notification after a click on the icon ----------------------------------------------------------------------


def test_the_summary_has_a_headline_and_says_how_things_stand() -> None:
    assert view(TWO).summary == "2 of 2 servers ready, 28 tools\nAll is well\nNo AI tool is connected"
    assert view(SEVEN).summary.split("\n") == [
        "5 of 7 servers ready, 82 tools",
        "linear needs a sign-in",
        "Cannot start db: no such program: my-db",
        "2 AI tools connected: codex (2) and cursor",
    ]
    assert "1 server is connecting" in view(running(GITHUB, server("a", CONNECTING))).summary
    assert view(TrayState(C.RESTARTING)).summary == "The gateway stopped and is restarting"


@pytest.mark.requirement("history-counted")
def test_todays_calls_stand_in_summary_and_tooltip() -> None:
    assert TWO.snapshot is not None
    counted = [replace(TWO.snapshot.gateway, today=today) for today in (CallsToday(43, 2), CallsToday(1, 0))]
    shown, one = (view(replace(TWO, snapshot=replace(TWO.snapshot, gateway=gateway))) for gateway in counted)
    assert shown.tooltip == "multi-mcp: 2 of 2 servers ready, 28 tools\n43 calls today, 2 failed"
    assert shown.summary.split("\n")[-1] == "43 calls today, 2 failed"
    assert one.summary.split("\n")[-1] == "1 call today"


def test_a_long_summary_is_cut() -> None:
    problems = [problem("Odd", line) for line in range(9)]
    assert view(running(GITHUB, problems=problems)).summary.split("\n")[-2] == "and 4 more"


# -- properties of every state ---------------------------------------------------------------------------------------

NASTY = st.text(max_size=80) | st.sampled_from(
    ["", "a/log", "a", "a%2Flog", "\ud800", "𝕏" * 100, "e\u0301" * 90, "a\n/b"]
)
STATES = st.builds(
    TrayState,
    child=st.sampled_from(ChildState),
    snapshot=st.none() | SNAPSHOTS,
    error=st.none() | NASTY,
    clients=st.lists(
        st.builds(ClientState, NASTY, NASTY, st.booleans(), st.booleans(), st.none() | NASTY), max_size=4
    ).map(tuple),
    autostart=st.none() | st.booleans(),
    offered=st.lists(st.builds(Offered, NASTY, NASTY, NASTY, st.integers(0, 2)), max_size=30).map(tuple),
)


def all_texts(seen: TrayView) -> list[str]:
    return [*seen.tooltip.split("\n"), *seen.summary.split("\n"), *[item.text for item in items(seen.menu)]]


@pytest.mark.requirement("tray-texts")
@given(STATES)
@settings(max_examples=300)
def test_every_text_is_short_plain_and_not_empty_and_every_menu_is_well_formed(state: TrayState) -> None:
    """Check texts and menus for the same states, because generating the states takes most of the time."""
    seen = view(state)
    assert [text for text in all_texts(seen) if not text or len(text) > texts.LINE or not text.isprintable()] == []
    assert len(seen.tooltip.encode("utf-16-le")) <= 2 * texts.TOOLTIP
    assert_has_keys_and_actions(seen)
    assert_separates_entries(seen)


def assert_has_keys_and_actions(seen: TrayView) -> None:
    """Assert that keys are unique, and that every enabled entry has either an action or a submenu."""
    entries = list(items(seen.menu))
    assert len({item.key for item in entries}) == len(entries)
    assert [item for item in entries if item.action is not None and item.children] == []
    assert [item for item in entries if item.action is None and item.enabled and not item.children] == []


def assert_separates_entries(seen: TrayView) -> None:
    """Assert that no menu begins or ends with a separator or has two in a row."""
    for menu in (seen.menu, *(item.children for item in items(seen.menu) if item.children)):
        lined = [isinstance(entry, Separator) for entry in menu]
        assert not lined[0]
        assert not lined[-1]
        assert not any(one and two for one, two in pairwise(lined))


@given(st.lists(NASTY, min_size=26, max_size=60, unique=True), st.sampled_from(State))
def test_every_server_is_in_the_menu_however_many_and_no_menu_is_too_long(names: list[str], state: State) -> None:
    seen = view(running(*[server(name, state) for name in names])).menu
    logs = {i.action.target for i in items(seen) if i.action is not None and i.action.verb is Verb.SHOW_LOG}
    assert logs == set(names)
    assert max(len(item.children) for item in items(seen)) <= 30


@given(SNAPSHOTS, st.floats(0, 1e6), st.integers(0, 10**6))
def test_what_differs_in_times_alone_looks_the_same(snapshot: Snapshot, seconds: float, number: int) -> None:
    later = replace(
        snapshot,
        revision=number,
        gateway=replace(snapshot.gateway, uptime_s=seconds),
        servers=tuple(
            replace(server, failed_s_ago=seconds, last_used_s_ago=seconds, calls=number) for server in snapshot.servers
        ),
    )
    assert view(TrayState(C.RUNNING, snapshot)) == view(TrayState(C.RUNNING, later))


def test_a_key_stays_when_the_text_changes() -> None:
    before = {item.key: item for item in items(view(running(GITHUB)).menu)}
    after = {item.key: item for item in items(view(running(replace(GITHUB, state=FAILED), LINEAR)).menu)}
    assert before.keys() - after.keys() == set()
    assert (before["servers/github"].text, after["servers/github"].text) == (
        "● github: connected, 26 tools",
        "✗ github: failed, 26 tools",
    )


def test_a_view_of_70_servers_is_quick_to_compare() -> None:
    one = running(*named(70))  # type: ignore[arg-type]
    assert view(one) == view(replace(one, snapshot=snapshot(*one.snapshot.servers)))  # type: ignore[union-attr]
    assert isinstance(view(one).menu[0], Item)
