"""What multi-mcp promises, one row a promise. Never here: how a promise is kept.

A test names the rows that it proves with `@pytest.mark.requirement("id", ...)`; tests/test_requirements.py fails for a
row without a test and for an id without a row. An id never changes its meaning: a changed promise gets a new id.
"""

from __future__ import annotations

REQUIREMENTS: dict[str, str] = {
    # Processes
    "proc-one-gateway": "A second gateway of the same user and home says that one is running and exits with code 7.",
    "proc-shim-starts-gateway": "Without a gateway the shim starts one, detached, and its client's session goes on.",
    "proc-linger": "A gateway started by a shim ends `linger` minutes after the last session and call ended.",
    "proc-no-orphans": "10 s after any exit of the gateway, SIGKILL included, no descendant of a backend is left.",
    "proc-import-weight": "Neither the shim, nor the gateway before it served a cached list, has imported `mcp`.",
    # The shim
    "shim-replays-handshake": "A gateway that dies is replaced under the shim: the client's next request is answered.",
    "shim-never-calls-twice": "A call under way when the gateway dies gets one error and is not sent again.",
    "shim-stdout-clean": "The shim writes nothing but frames to stdout, whatever goes wrong.",
    "shim-stdlib-only": "The shim's module-level imports are the few listed ones of the standard library.",
    # Places and the file
    "path-home-moves-all": "With MULTI_MCP_HOME set, nothing is read or written by multi-mcp outside that folder.",
    "path-modes": "Lock, endpoint file and socket have mode 0600 in a runtime folder of mode 0700.",
    "file-first-run": "Without servers.yaml one is written, with a commented example and a sample server that runs.",
    "file-comments-kept": "An edit keeps comments, order and quoting byte for byte outside the lines that it changes.",
    "file-atomic-write": "A failed or interrupted write leaves the old file whole; the file's mode is kept.",
    "file-changed-refused": "An edit is refused when the file changed since it was read, and nothing is written.",
    "file-applied-on-save": "A saved servers.yaml is applied without a restart.",
    "file-unchanged-run-on": "Servers whose launch settings a saved change did not touch keep their process.",
    "file-broken-goes-on": "A servers.yaml that does not parse changes nothing that runs; its line is in `status`.",
    "file-one-wrong-entry": "One wrong server entry is a problem with name and line; all other servers run.",
    "file-unknown-key": "An unknown key is a problem that names the nearest known key, and is not fatal.",
    "file-other-spellings": "Keys in the spellings of the imported formats (idleTimeout, ...) mean the same.",
    "var-forms": "All forms of variables in PRODUCT's list are replaced in command, args, env, cwd, url and headers.",
    "var-missing": "A missing variable is that server's error, by name, before anything is started or sent.",
    # Life of a backend
    "life-table": "Only the pairs in the NEXT table change a server's state; an unlisted pair raises.",
    "life-single-flight": "20 calls at once to a cold server start exactly one process.",
    "life-eager": "Eager servers connect at start, at most 10 at once, and are not idle-closed unless told so.",
    "life-keep-alive": "A keep-alive server connects at start, is health-checked, reconnected and never idle-closed.",
    "life-keep-alive-backoff": "Background reconnects wait 30 s, doubling to 5 min, with jitter, reset by a success.",
    "life-idle-close": "An idle server is closed after its timeout, never while a call is in flight, and stays listed.",
    "life-backoff": "In the backoff calls fail at once, saying how long ago and why; a reconnect ignores it.",
    "life-crash-in-box": "A backend killed during a call gives that one error within 1 s; the next call works.",
    "life-hang-in-box": "A backend that hangs at initialize delays no other: the other tools are listed within 1 s.",
    "life-junk-tolerated": "Junk on stdout and floods on stderr harm neither that backend's calls nor other servers.",
    "life-stop-ladder": "Stopping: stdin closed, 2 s, SIGTERM to the tree, 2 s, SIGKILL; nothing of it is left.",
    "life-slow-list": "A slow or failed tools/list on a live connection does not make the server failed.",
    "life-stderr-log": "A backend's stderr lies in logs/servers/NAME.log, rotated.",
    "npx-cases": "A server written with npx whose package npm has cached is started without npm; in doubt as written.",
    "npx-versions": "An exact version must be the cached one; a range, in any of npm's forms, must hold it.",
    "npx-tag-once-a-day": "What a tag like `latest` means is npm's decision once a day; within the day npm is not asked.",
    "npx-no-arguments-kept": "What is remembered of npx servers holds no argument of theirs.",
    "npx-which-copy": "Of several cached copies the one made for the same words runs, none that means something else.",
    "npx-hostile": "A cached package whose bin leads out of it, or that cannot be read, is left to npm.",
    "npx-as-npm-would": "A project's or global installation, or a setting, that npm would heed first is left to npm.",
    "npx-real-server": "A real npm server starts from npx's cache and answers.",
    # Transports towards backends
    "transport-all-three": "Backends over stdio, Streamable HTTP and legacy SSE are initialized, listed and called.",
    "transport-sse-fallback": "SSE is tried only after 404, 405, 406 or 415 to the HTTP initialize, without a probe.",
    "transport-both-eras": "A backend of either protocol era is negotiated with: server/discover, or initialize.",
    "transport-real-servers": "The six real reference servers are listed together and each answers a call.",
    # Catalog
    "cat-cache-first": "Later starts serve the list from the cache with no backend process running.",
    "cat-first-run": "Nothing cached: the endpoint answers at once, discovery follows, sessions get list_changed.",
    "cat-entry-used": "A cache entry is used while its launch hash fits; an older one is served during refresh.",
    "cat-corrupt": "A corrupt or truncated cache file is discarded and rebuilt; the gateway starts.",
    "cat-no-secrets": "The launch hash and the cache hold names of variables, never their values.",
    "cat-found-tools-written": "Discovered tools are written into servers.yaml with `enabled: true`.",
    "merge-kept": "A refresh keeps the `enabled` of every known tool.",
    "merge-stale": "A tool that is gone is marked stale and keeps its `enabled`; back again, the mark is removed.",
    "merge-failed-refresh": "A failed refresh changes no `enabled` and marks nothing stale.",
    "merge-no-tools-key": "With no `tools` key all tools of a server pass.",
    "name-form": "Every exposed name matches ^[A-Za-z0-9_-]{1,64}$ and is unique.",
    "name-stable": "Exposed names do not depend on connect order and are the same after a restart.",
    "name-resolved": "Exposed names are looked up, never split; any unambiguous spelling works in a call.",
    "resource-clash": "Resources keep their URIs; a clash gets the multi-mcp://SERVER/ prefix.",
    # What a client sees
    "call-no-field-lost": "Every field that a server or client sent arrives, unknown ones too, in both directions.",
    "call-features": "Tools, resources, templates, prompts, completion and logging reach the right backend.",
    "call-progress": "Progress of a backend reaches the session that asked, under that session's own token.",
    "call-cancel": "A cancelled call is cancelled at the backend, and the session and the backend go on.",
    "call-ping": "A ping is answered by the gateway itself, with no backend needed.",
    "call-list-changed": "Sessions whose list differs get list_changed, others none.",
    "call-disabled-refused": "A disabled tool is in no list and refused when called.",
    "call-two-clients": "Two clients share one backend process and each gets its own answers.",
    # Bad input on the wire
    "wire-junk-frame": "A frame that is no JSON-RPC: an error where an id is known, else dropped; the session lives.",
    "wire-too-large": "A frame over 64 MB or nested past the parser is refused and the session lives.",
    "wire-id-kept": "An answer carries the id that the client gave, number or text, whatever the backends' ids are.",
    "wire-large-result": "A large result passes with its id replaced in place and all other bytes unchanged.",
    "fault-disk-full": "A full disk or read-only folder is a clear error; nothing is lost or half written.",
    # Command line
    "cli-exit-codes": "Exit codes are those of PRODUCT 12: 0, 1, 2, 3, 4, 5, 6, 7.",
    "cli-error-lines": "An error is one line what and one line what to do, on stderr.",
    "cli-json-shapes": "`status --json` and `list --json` have the documented shapes.",
    "cli-call": "`call TOOL KEY=VALUE` and `call TOOL --args JSON` print the tool's answer.",
    "cli-enable-disable": "`enable` and `disable` change file and lists, for a server and for tool globs.",
    "cli-stop": "`stop` ends the gateway and all its backends.",
    "cli-demo": "`demo` does the whole round trip through a real shim in a temporary home and exits 0.",
    # House
    "house-import-fences": "Rooms and libraries are imported only across the listed fences.",
}
