"""Real servers that need no network, with calls of all their tools and the differences to expect between two runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests import servers
from tests.backends.world import real_connection
from tests.confinement.test_hostile import needs
from tests.e2e.test_more_servers import NOWHERE, OFFLINE, devtools, playwright
from trayapp.confinement.policy import LEADING_OUT, TEMPORARY, cache_environment
from trayapp.model.config import Confine, Confining, ServerConfig
from trayapp.wire.messages import RpcError

Calls = tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True)
class Server:
    """A server, and calls of all its tools in an order that works.

    In the command, `calls` and `env`, `{folder}` and `{page}` stand for the server's folder and a local web page.
    - `varies`: pattern of a text that differs from run to run -> the reason
    - `by_success`: tool whose answers are compared by their success only -> the reason
    - `unable`: tool that fails here -> the reason
    - `needs`: the `confine` without which the server fails
    """

    argv: Callable[[Path], list[str]]
    calls: Calls
    env: dict[str, str] = field(default_factory=dict)
    varies: dict[str, str] = field(default_factory=dict)
    by_success: dict[str, str] = field(default_factory=dict)
    unable: dict[str, str] = field(default_factory=dict)
    needs: Confine = field(default_factory=Confine)


A, B = ({"name": name, "entityType": "t", "observations": ["o"]} for name in "ab")
KNOWS = [{"from": "a", "to": "b", "relationType": "knows"}]
GRAPH: Calls = (
    ("create_entities", {"entities": [A, B]}),
    ("create_relations", {"relations": KNOWS}),
    ("add_observations", {"observations": [{"entityName": "a", "contents": ["p"]}]}),
    ("search_nodes", {"query": "p"}),
    ("open_nodes", {"names": ["a"]}),
    ("read_graph", {}),
    ("delete_observations", {"deletions": [{"entityName": "a", "observations": ["p"]}]}),
    ("delete_relations", {"relations": KNOWS}),
    ("delete_entities", {"entityNames": ["b"]}),
)
TASK = {"requestId": "req-1", "taskId": "task-1"}
TASKS: Calls = (
    ("request_planning", {"originalRequest": "r", "tasks": [{"title": "one", "description": "d"}]}),
    ("list_requests", {}),
    ("get_next_task", {"requestId": "req-1"}),
    ("open_task_details", {"taskId": "task-1"}),
    ("update_task", {**TASK, "title": "uno"}),
    ("add_tasks_to_request", {"requestId": "req-1", "tasks": [{"title": "two", "description": "d"}]}),
    ("delete_task", {"requestId": "req-1", "taskId": "task-2"}),
    ("mark_task_done", TASK),
    ("approve_task_completion", TASK),
    ("approve_request_completion", {"requestId": "req-1"}),
)
IN_REPOSITORY = {"repo_path": "{folder}"}
CLOCK = "the clock"
SERVERS = {
    "memory": Server(lambda _: servers.memory(), GRAPH, {"MEMORY_FILE_PATH": "{folder}/memory.json"}),
    "knowledge-graph": Server(
        lambda _: servers.npm("@itseasy21/mcp-knowledge-graph"),
        (
            *GRAPH[:3],
            ("update_entities", {"entities": [{**A, "entityType": "u"}]}),
            ("update_relations", {"relations": KNOWS}),
            *GRAPH[3:],
        ),
        {"MEMORY_FILE_PATH": "{folder}/memory.json"},
        varies={r"\d{4}-\d\d-\d\dT[\d:.]+Z": CLOCK},
    ),
    "sequential-thinking": Server(
        lambda _: servers.sequential_thinking(),
        (
            (
                "sequentialthinking",
                {"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
            ),
        ),
    ),
    "time": Server(
        lambda _: servers.time(),
        (
            ("get_current_time", {"timezone": "UTC"}),
            ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ),
        varies={r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d": CLOCK, "(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day": CLOCK},
    ),
    "calculator": Server(
        lambda _: servers.pypi_sdk1("mcp-server-calculator"), (("calculate", {"expression": "6 * 7"}),)
    ),
    "filesystem": Server(
        servers.filesystem,
        (
            ("read_file", {"path": "{folder}/a.txt"}),
            ("read_text_file", {"path": "{folder}/a.txt"}),
            ("read_media_file", {"path": "{folder}/a.txt"}),
            ("read_multiple_files", {"paths": ["{folder}/a.txt", "{folder}/a.txt"]}),
            ("write_file", {"path": "{folder}/b.txt", "content": "x"}),
            ("edit_file", {"path": "{folder}/b.txt", "edits": [{"oldText": "x", "newText": "y"}]}),
            ("create_directory", {"path": "{folder}/made"}),
            ("move_file", {"source": "{folder}/b.txt", "destination": "{folder}/made/b.txt"}),
            ("list_directory", {"path": "{folder}"}),
            ("list_directory_with_sizes", {"path": "{folder}/made"}),
            ("directory_tree", {"path": "{folder}/made"}),
            ("search_files", {"path": "{folder}", "pattern": "*.txt"}),
            ("get_file_info", {"path": "{folder}/a.txt"}),
            ("list_allowed_directories", {}),
        ),
        varies={r"\w{3} \w{3} \d\d \d{4} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]+Z": "times of the files"},
    ),
    "git": Server(
        servers.git,
        (
            ("git_status", IN_REPOSITORY),
            ("git_diff_unstaged", IN_REPOSITORY),
            ("git_add", {**IN_REPOSITORY, "files": ["a.txt"]}),
            ("git_diff_staged", IN_REPOSITORY),
            ("git_diff", {**IN_REPOSITORY, "target": "HEAD"}),
            ("git_reset", IN_REPOSITORY),
            ("git_add", {**IN_REPOSITORY, "files": ["a.txt"]}),
            ("git_commit", {**IN_REPOSITORY, "message": "more"}),
            ("git_log", IN_REPOSITORY),
            ("git_show", {**IN_REPOSITORY, "revision": "HEAD"}),
            ("git_create_branch", {**IN_REPOSITORY, "branch_name": "side"}),
            ("git_checkout", {**IN_REPOSITORY, "branch_name": "side"}),
            ("git_branch", {**IN_REPOSITORY, "branch_type": "local"}),
        ),
    ),
    "git-mcp-server": Server(
        lambda _: servers.npm("@cyanheads/git-mcp-server"),
        (
            ("git_set_working_dir", {"path": "{folder}"}),
            ("git_status", {}),
            ("git_add", {"paths": ["a.txt"]}),
            ("git_commit", {"message": "more"}),
            ("git_init", {"path": "{folder}/other.git", "bare": True, "initialBranch": "main"}),
            ("git_remote", {"mode": "add", "name": "origin", "url": "{folder}/other.git"}),
            ("git_push", {"remote": "origin", "branch": "main", "setUpstream": True}),
            ("git_fetch", {"remote": "origin"}),
            ("git_pull", {"remote": "origin", "branch": "main"}),
            ("git_clone", {"url": "{folder}/other.git", "path": "{folder}/cloned"}),
            ("git_branch", {"mode": "create", "branchName": "side"}),
            ("git_checkout", {"target": "side"}),
            ("git_commit", {"message": "aside", "allowEmpty": True}),
            ("git_checkout", {"target": "main"}),
            ("git_diff", {"target": "side"}),
            ("git_merge", {"branch": "side"}),
            ("git_rebase", {"upstream": "side"}),
            ("git_cherry_pick", {"commits": ["HEAD"], "noCommit": True}),
            ("git_tag", {"mode": "create", "tagName": "v1"}),
            ("git_log", {}),
            ("git_show", {"object": "HEAD"}),
            ("git_blame", {"filePath": "a.txt"}),
            ("git_reflog", {}),
            ("git_stash", {"mode": "list"}),
            ("git_reset", {"mode": "mixed", "target": "HEAD"}),
            ("git_clean", {"force": True, "dryRun": True}),
            ("git_worktree", {"mode": "list"}),
            ("git_changelog_analyze", {"reviewTypes": ["features"]}),
            ("git_wrapup_instructions", {"acknowledgement": "yes"}),
            ("git_clear_working_dir", {"confirm": "yes"}),
        ),
        {"GIT_SIGN_COMMITS": "false"},
        needs=Confine(sockets=True),
    ),
    "everything": Server(
        lambda _: servers.everything(),
        (
            ("echo", {"message": "x"}),
            ("get-annotated-message", {"messageType": "error"}),
            ("get-env", {}),
            ("get-resource-links", {}),
            ("get-resource-reference", {}),
            ("get-structured-content", {"location": "New York"}),
            ("get-sum", {"a": 1, "b": 1}),
            ("get-tiny-image", {}),
            ("gzip-file-as-resource", {"name": "x", "data": "data:text/plain,hello"}),
            ("toggle-simulated-logging", {}),
            ("toggle-subscriber-updates", {}),
            ("trigger-long-running-operation", {"duration": 0.1, "steps": 1}),
            ("simulate-research-query", {"topic": "x"}),
        ),
        varies={r"\d+:\d\d:\d\d [AP]M": CLOCK},
        unable={"simulate-research-query": "it runs as a task, which this client does not ask for"},
    ),
    "fetch": Server(
        lambda _: [*servers.pypi("mcp-server-fetch"), "--allow-private-ips"],
        (("fetch", {"url": "{page}", "raw": True}),),
    ),
    "sqlite": Server(
        lambda folder: [*servers.pypi_sdk1("mcp-server-sqlite"), "--db-path", str(folder / "data.db")],
        (
            ("create_table", {"query": "CREATE TABLE t (a INTEGER)"}),
            ("write_query", {"query": "INSERT INTO t VALUES (4711)"}),
            ("read_query", {"query": "SELECT a FROM t"}),
            ("list_tables", {}),
            ("describe_table", {"table_name": "t"}),
            ("append_insight", {"insight": "i"}),
        ),
    ),
    "postgres": Server(
        lambda _: [*servers.npm("@modelcontextprotocol/server-postgres"), "{database}"],
        (("query", {"sql": "SELECT sum(n) FROM generate_series(1, 100) AS n"}),),
    ),
    "shell": Server(
        lambda _: servers.pypi_sdk1("mcp-shell-server"),
        (("shell_execute", {"command": ["cat", "a.txt"], "directory": "{folder}"}),),
        {"ALLOW_COMMANDS": "cat"},
    ),
    "commands": Server(
        lambda _: servers.npm("mcp-server-commands"), (("run_command", {"command": "ls; cat a.txt; echo x > made"}),)
    ),
    "taskmanager": Server(
        lambda _: servers.npm("@kazuph/mcp-taskmanager"), TASKS, {"TASK_MANAGER_FILE_PATH": "{folder}/tasks.json"}
    ),
    "obsidian": Server(
        lambda folder: [*servers.npm("mcp-obsidian"), str(folder)],
        (("search_notes", {"query": "note"}), ("read_notes", {"paths": ["note.md"]})),
    ),
    "mcpvault": Server(
        lambda folder: [*servers.npm("@bitbonsai/mcpvault"), str(folder)],
        (
            ("write_note", {"path": "a.md", "content": "# A\nhello [[b]] #tag\n", "frontmatter": {"k": "v"}}),
            ("write_note", {"path": "b.md", "content": "# B\nlines\n"}),
            ("read_note", {"path": "a.md"}),
            ("patch_note", {"path": "a.md", "oldString": "hello", "newString": "bye"}),
            ("list_directory", {}),
            ("search_notes", {"query": "bye"}),
            ("read_multiple_notes", {"paths": ["a.md", "b.md"]}),
            ("update_frontmatter", {"path": "a.md", "frontmatter": {"x": 1}}),
            ("get_notes_info", {"paths": ["a.md"]}),
            ("get_frontmatter", {"path": "a.md"}),
            ("manage_tags", {"path": "a.md", "operation": "add", "tags": ["t"]}),
            ("get_vault_stats", {}),
            ("list_all_tags", {}),
            ("wiki_link", {"document": "b"}),
            ("get_note_outline", {"path": "a.md"}),
            ("read_note_lines", {"path": "b.md", "startLine": 1, "endLine": 1}),
            ("move_note", {"oldPath": "b.md", "newPath": "c.md"}),
            (
                "move_file",
                {"oldPath": "c.md", "newPath": "d.md", "confirmOldPath": "c.md", "confirmNewPath": "d.md"},
            ),
            ("delete_note", {"path": "d.md", "confirmPath": "d.md"}),
        ),
        varies={r'(?<=\\"modified\\":)\d+': "times of the files"},
    ),
    "eslint": Server(
        lambda _: servers.npm("@eslint/mcp"), (("lint-files", {"filePaths": ["{folder}/lint.js"]}),)
    ),
}  # fmt: skip
P = {"pageId": 1}
BROWSERS = {
    "playwright": Server(
        lambda _: playwright(),
        (
            ("browser_navigate", {"url": "{page}"}),
            ("browser_resize", {"width": 800, "height": 800}),
            ("browser_snapshot", {}),
            ("browser_evaluate", {"function": "() => document.title"}),
            ("browser_find", {"text": "A page of the test"}),
            ("browser_wait_for", {"text": "A page of the test"}),
            ("browser_run_code_unsafe", {"code": "async page => page.title()"}),
            ("browser_type", {"target": "[aria-label=Name]", "text": "x"}),
            ("browser_press_key", {"key": "y"}),
            (
                "browser_fill_form",
                {"fields": [{"name": "Name", "target": "[aria-label=Name]", "type": "textbox", "value": "z"}]},
            ),
            ("browser_select_option", {"target": "select", "values": ["two"]}),
            ("browser_hover", {"target": "h1"}),
            ("browser_drag", {"startTarget": "h1", "endTarget": "body"}),
            ("browser_drop", {"target": "h1", "data": {"text/plain": "x"}}),
            ("browser_click", {"target": "button"}),
            ("browser_handle_dialog", {"accept": True}),
            ("browser_click", {"target": "input[type=file]"}),
            ("browser_file_upload", {"paths": ["{folder}/a.txt"]}),
            ("browser_emulate_media", {"colorScheme": "dark"}),
            ("browser_console_messages", {"level": "error"}),
            ("browser_network_requests", {"static": True}),
            ("browser_network_request", {"index": 1}),
            ("browser_take_screenshot", {"scale": "css"}),
            ("browser_tabs", {"action": "list"}),
            ("browser_navigate_back", {}),
            ("browser_close", {}),
        ),
        varies={
            r"page-[\dT-]+Z": "files are named by the clock",
            r"date: [\w, :]+ GMT": CLOCK,
            r"duration:  \d+ms": "how long it took",
        },
        needs=Confine(sockets=True),
    ),
    "chrome-devtools": Server(
        lambda _: devtools(),
        (
            ("list_pages", {}),
            ("navigate_page", {**P, "url": "{page}"}),
            ("take_snapshot", P),
            ("wait_for", {**P, "text": ["A page of the test"]}),
            ("click", {**P, "uid": "1_1"}),
            ("hover", {**P, "uid": "1_1"}),
            ("drag", {**P, "from_uid": "1_1", "to_uid": "1_1"}),
            ("fill", {**P, "uid": "1_2", "value": "x"}),
            ("fill_form", {**P, "elements": [{"uid": "1_2", "value": "y"}]}),
            ("type_text", {**P, "text": "z"}),
            ("press_key", {**P, "key": "x"}),
            ("upload_file", {**P, "uid": "1_6", "filePaths": ["{folder}/a.txt"]}),
            ("get_css_styles", {**P, "uid": "1_1"}),
            ("evaluate_script", {**P, "function": "() => document.title"}),
            (
                "evaluate_script",
                {**P, "function": "() => { document.activeElement.blur(); setTimeout(() => alert('hello')); }"},
            ),
            ("handle_dialog", {**P, "action": "accept"}),
            ("emulate", {**P, "colorScheme": "dark"}),
            ("resize_page", {**P, "width": 800, "height": 800}),
            ("list_console_messages", P),
            ("get_console_message", {**P, "msgid": 1}),
            ("list_network_requests", P),
            ("get_network_request", {**P, "reqid": 1}),
            ("take_screenshot", P),
            ("take_heapsnapshot", {**P, "filePath": "{folder}/heap"}),
            ("screencast_start", P),
            ("screencast_stop", P),
            ("performance_start_trace", {**P, "reload": True, "autoStop": False}),
            ("performance_stop_trace", P),
            ("performance_analyze_insight", {**P, "insightSetId": "NAVIGATION_0", "insightName": "DocumentLatency"}),
            ("lighthouse_audit", {**P, "mode": "snapshot"}),
            ("new_page", {"url": "{page}", "background": True}),
            ("select_page", P),
            ("close_page", P),
        ),
        varies={
            r"date:[\w, :]+ GMT": CLOCK,
            r"chrome-devtools-mcp-\w{6}": "a temporary folder",
            r"Total timing: [\d.]+ms": "how long it took",
            r'(?<=\\"loaderId\\":)\\"\w+': "a number that the browser gives each page load",
        },
        by_success=dict.fromkeys(
            ("performance_stop_trace", "performance_analyze_insight"), "all of it is how long things took"
        ),
        needs=Confine(sockets=True),
    ),
}
# Variables that confinement removes or sets, all of which the tool `get-env` would show.
ENVIRONMENT = {*LEADING_OUT, *TEMPORARY, *cache_environment("/x", {}), "PLAYWRIGHT_BROWSERS_PATH"}
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "T"), ("EMAIL", "t@example.org"), ("DATE", "1767225600 +0000"))
}
FAILED = "failed: "


def make_folder(folder: Path) -> None:
    """Make a new Git repository of a few files, in which one file has changed since a commit at a fixed time."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    (folder / "note.md").write_text("# A note\n")
    (folder / "lint.js").write_text("const unused = 1;\n")
    (folder / "eslint.config.mjs").write_text('export default [{rules: {"no-unused-vars": "error"}}];\n')
    (folder / "offline.js").write_text(OFFLINE)
    for command in (["init", "-q", "-b", "main", "."], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", *command], cwd=folder, env={**os.environ, **IDENTITY}, check=True)
    (folder / "a.txt").write_text("hello again\n")


def comparable(server: Server, tool: str, result: Any) -> str:
    """Return a result as text, without the parts that vary. It begins with FAILED if the tool failed."""
    failed = FAILED if result.get("isError") else ""
    if tool in server.by_success:
        return failed
    if tool == "get-env":
        shown = json.loads(result["content"][0]["text"])
        return failed + json.dumps({name: value for name, value in shown.items() if name not in ENVIRONMENT})
    text = json.dumps(result, ensure_ascii=False)
    for pattern in server.varies:
        text = re.sub(pattern, "VARIES", text)
    return failed + text


async def answers(
    name: str, server: Server, folder: Path, confine: Confining, **places: str
) -> tuple[set[str], list[tuple[str, str]]]:
    """Run the server in a new folder. Return the names of its tools, and the outcome of each call."""
    make_folder(folder)
    places |= {"folder": str(folder)}

    def filled(value: Any) -> Any:
        text = json.dumps(value)
        for place, what in places.items():
            text = text.replace(f"{{{place}}}", what)
        return json.loads(text)

    env = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE) | IDENTITY
    env |= {"NO_PROXY": "127.0.0.1", "NODE_OPTIONS": f"--require {folder}/offline.js", **filled(server.env)}
    command, *args = filled(server.argv(folder))
    entry = ServerConfig(name, command=command, args=tuple(args), env=env, cwd=str(folder), connect_timeout=60)
    environ = {**os.environ, "MULTI_MCP_HOME": str(folder.parent / "ours")}
    found: list[tuple[str, str]] = []
    async with real_connection(replace(entry, confine=confine), environ=environ) as (connection, _):
        tools = {tool["name"] for tool in (await connection.request("tools/list", {}))["tools"]}
        for tool, arguments in server.calls:
            try:
                result = await connection.request("tools/call", {"name": tool, "arguments": filled(arguments)})
                found.append((tool, comparable(server, tool, result)))
            except RpcError as error:
                found.append((tool, FAILED + error.message))
    return tools, found


async def compare(name: str, server: Server, folder: Path, **places: str) -> None:
    """Assert that a server's tools give the same answers without `confine` and with the `confine` that it needs.

    Also assert that every tool is called, and that only the tools in `unable` fail.
    """
    needs(server.needs)
    tools, free = await answers(name, server, folder, False, **places)
    _, confined = await answers(name, server, folder, server.needs, **places)
    assert {tool for tool, _ in free} == tools
    assert confined == free
    assert {tool for tool, said in free if said.startswith(FAILED)} == server.unable.keys()
