"""The checks that a client makes with a server that has all extensions."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio

from tests.e2e.cell import META, MODERN
from tests.e2e.client import Conversation, Message, RpcFailure
from tests.patience import stretched

TASKS = META + "tasks"
CAPABILITIES: Message = {"elicitation": {"form": {}}, "extensions": {TASKS: {}, META + "ui": {}}}
ANSWERS = {"confirm": {"confirm": True}, "name": {"name": "Ada"}, "go": {"confirm": True}}
NOTHING = "nothing came"
ENDED = ("completed", "failed", "cancelled")
PREFIX = re.compile(r"multi-mcp://[a-z0-9%-]+/")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
NUMBER = re.compile(r"task-\d+")


@dataclass
class Visitor:
    """A client, and the one of its servers that is checked. The names of that server's tools begin with `prefix`."""

    client: Conversation
    revision: str
    prefix: str = ""
    server: str = ""

    @property
    def modern(self) -> bool:
        return self.revision == MODERN

    def params(self, params: Message, capabilities: Message | None = None) -> Message:
        if not self.modern:
            return params
        about = {
            META + "protocolVersion": MODERN,
            META + "clientInfo": {"name": "visitor", "version": "1"},
            META + "clientCapabilities": CAPABILITIES if capabilities is None else capabilities,
        }
        return {**params, "_meta": {**params.get("_meta", {}), **about}}

    async def introduce(self) -> Message:
        """Perform the handshake and return the capabilities of the other end."""
        if self.modern:
            found = await self.request("server/discover")
        else:
            found = await self.client.initialize(self.revision, **CAPABILITIES)
        capabilities: Message = found["capabilities"]
        return capabilities

    async def request(self, method: str, **params: Any) -> Message:
        return await self.client.request(method, self.params(params))

    async def call(self, tool: str, *, as_task: bool = False, **arguments: Any) -> Message:
        task: Message = {"task": {}} if as_task and not self.modern else {}
        return await self.request("tools/call", name=self.prefix + tool, arguments=arguments, **task)

    def mine(self, addresses: list[Message], member: str) -> list[Message]:
        """Return the items that belong to this server: those without a `multi-mcp:` prefix, or with the server's."""
        start = f"multi-mcp://{self.server}/"
        return [one for one in addresses if not PREFIX.match(one[member]) or one[member].startswith(start)]


Check = Callable[[Visitor], Awaitable[Any]]


async def checks(visitor: Visitor) -> Message:
    """Run all checks. Return their results without the parts that differ from run to run."""
    found: Message = {}
    for check in BOTH + (NEWER if visitor.modern else OLDER):
        try:
            with anyio.fail_after(stretched(6.0)):
                found[check.__name__] = plain(await check(visitor))
        except RpcFailure as error:
            found[check.__name__] = {"error": error.error.get("code"), "says": plain(error.error.get("message"))}
        except TimeoutError:
            found[check.__name__] = NOTHING
    return found


def plain(value: Any) -> Any:
    text = NUMBER.sub("task-N", TIME.sub("TIME", PREFIX.sub("", json.dumps(value, sort_keys=True))))
    return json.loads(text)


async def refused(asking: Awaitable[Message]) -> Any:
    """Return the code of the error, or the whole answer if there is no error."""
    try:
        return await asking
    except RpcFailure as error:
        return error.error["code"]


def told(result: Message) -> Message:
    """Return a result without the members that each end adds itself."""
    return {key: value for key, value in result.items() if key not in ("_meta", "ttlMs", "cacheScope", "resultType")}


# -- Apps and links --------------------------------------------------------------------------------------------------


async def app_opens(visitor: Visitor) -> Any:
    """Read each address of a tool's user interface. Return the addresses and the contents."""
    tools = (await visitor.request("tools/list"))["tools"]
    meta = next(tool["_meta"] for tool in tools if tool["name"] == visitor.prefix + "show")
    addresses = [meta["ui"]["resourceUri"], meta["ui/resourceUri"], meta["openai/outputTemplate"]]
    shown = (await visitor.call("show"))["_meta"]["ui"]["resourceUri"]
    read = [told(await visitor.request("resources/read", uri=uri)) for uri in (*addresses, shown)]
    assert [one["contents"][0]["uri"] for one in read] == [*addresses, shown]
    return [addresses, read]


async def links_lead_back(visitor: Visitor) -> Any:
    link = (await visitor.call("link"))["content"][0]
    inside = (await visitor.call("embed"))["content"][0]["resource"]
    read = [told(await visitor.request("resources/read", uri=one["uri"])) for one in (link, inside)]
    return [link, inside, read]


# -- skills ----------------------------------------------------------------------------------------------------------


async def skills_are_listed(visitor: Visitor) -> Any:
    return visitor.mine((await visitor.request("skills/list"))["skills"], "uri")


async def skills_are_got(visitor: Visitor) -> Any:
    listed = visitor.mine((await visitor.request("skills/list"))["skills"], "uri")
    return [(await visitor.request("skills/get", uri=one["uri"]))["skill"] == one for one in listed]


async def skill_files_are_read(visitor: Visitor) -> Any:
    listed = visitor.mine((await visitor.request("skills/list"))["skills"], "uri")
    files = [file["uri"] for skill in listed for file in skill["resources"]]
    return [told(await visitor.request("resources/read", uri=uri)) for uri in files]


async def skill_folders_are_read(visitor: Visitor) -> Any:
    listed = visitor.mine((await visitor.request("skills/list"))["skills"], "uri")
    root = listed[0]["uri"].removesuffix("/SKILL.md")
    children = (await visitor.request("resources/directory/read", uri=root))["resources"]
    below = next(child["uri"] for child in children if child["mimeType"] == "inode/directory")
    return [children, told(await visitor.request("resources/directory/read", uri=below))]


async def unknown_skill(visitor: Visitor) -> Any:
    return await refused(visitor.request("skills/get", uri="skill://no-such-skill/SKILL.md"))


# -- events ----------------------------------------------------------------------------------------------------------


async def event(visitor: Visitor) -> str:
    listed = visitor.mine((await visitor.request("events/list"))["events"], "name")
    name: str = listed[0]["name"]
    return name


async def events_are_listed(visitor: Visitor) -> Any:
    return visitor.mine((await visitor.request("events/list"))["events"], "name")


async def events_are_polled(visitor: Visitor) -> Any:
    name = await event(visitor)
    found = await visitor.request("events/poll", name=name, arguments={}, cursor=None)
    assert found["events"][0]["name"] == name
    return told(found)


async def events_are_streamed(visitor: Visitor) -> Any:
    name, number = await event(visitor), 7_000
    before = len(visitor.client.told)
    visitor.client.ask("events/stream", visitor.params({"name": name, "arguments": {}}), number)
    await visitor.client.heard("notifications/events/active")
    await visitor.call("fire", mark=1)
    await visitor.client.heard("notifications/events/event")
    visitor.client.send({"method": "notifications/cancelled", "params": {"requestId": number}})
    found = [one["params"] for one in visitor.client.told[before:] if one["method"].startswith("notifications/events/")]
    assert found[-1]["name"] == name
    assert {one["_meta"][META + "subscriptionId"] for one in found} == {number}
    return found


async def webhooks(visitor: Visitor) -> Any:
    name = await event(visitor)
    hook = {"mode": "webhook", "url": "https://example.com/hook", "secret": "whsec_x"}
    made = await visitor.request("events/subscribe", name=name, arguments={}, delivery=hook)
    gone = await visitor.request("events/unsubscribe", name=name, arguments={}, delivery={"url": hook["url"]})
    return [told(made), told(gone)]


async def unknown_event(visitor: Visitor) -> Any:
    name = (await event(visitor)).replace("mail.received", "no.such.event")
    return type(await refused(visitor.request("events/poll", name=name, arguments={}))).__name__


# -- tasks of SEP-2663 -----------------------------------------------------------------------------------------------


async def task_until(visitor: Visitor, task: Message, *states: str) -> Message:
    while True:
        found = await visitor.request("tasks/get", taskId=task["taskId"])
        assert found["taskId"] == task["taskId"]
        if found["status"] in states or found["status"] in ENDED:
            return told(found)
        await anyio.sleep(0.02)


async def task_completes(visitor: Visitor) -> Any:
    task = await visitor.call("slow_compute", as_task=True, seconds=0.2)
    done = await task_until(visitor, task)
    link = done["result"]["content"][1]["uri"]
    return [told(task), done, told(await visitor.request("resources/read", uri=link))]


async def task_reports_failures(visitor: Visitor) -> Any:
    tools = [await visitor.call(tool, as_task=True) for tool in ("failing_job", "protocol_error_job")]
    return [await task_until(visitor, task) for task in tools]


async def task_asks(visitor: Visitor) -> Any:
    found = []
    for tool in ("confirm_delete", "multi_input"):
        task = await visitor.call(tool, as_task=True)
        asking = await task_until(visitor, task, "input_required")
        said = {key: {"action": "accept", "content": ANSWERS[key]} for key in asking["inputRequests"]}
        taken = await visitor.request("tasks/update", taskId=task["taskId"], inputResponses=said)
        found.append([asking, told(taken), await task_until(visitor, task)])
    return found


async def task_after_questions(visitor: Visitor) -> Any:
    asked = await visitor.call("test_tool_with_task")
    said = {key: {"action": "accept", "content": {"name": "Ada"}} for key in asked["inputRequests"]}
    params = {"name": visitor.prefix + "test_tool_with_task", "arguments": {}, "inputResponses": said}
    task = await visitor.request("tools/call", **params, requestState=asked["requestState"])
    return await task_until(visitor, task)


async def task_is_cancelled(visitor: Visitor) -> Any:
    task = await visitor.call("slow_compute", as_task=True, seconds=600)
    taken = await visitor.request("tasks/cancel", taskId=task["taskId"])
    return [told(taken), await task_until(visitor, task)]


async def task_is_told(visitor: Visitor) -> Any:
    task = await visitor.call("slow_compute", as_task=True, seconds=600)
    wanted, number = {"taskIds": [task["taskId"]]}, 8_000
    visitor.client.ask("subscriptions/listen", visitor.params({"notifications": wanted}), number)
    acknowledged = (await visitor.client.heard("notifications/subscriptions/acknowledged"))[-1]
    await visitor.request("tasks/cancel", taskId=task["taskId"])
    said = (await visitor.client.heard("notifications/tasks"))[-1]
    visitor.client.send({"method": "notifications/cancelled", "params": {"requestId": number}})
    assert said["taskId"] == task["taskId"]
    assert acknowledged["notifications"] == wanted
    return [acknowledged, {**said, "_meta": said["_meta"][META + "subscriptionId"]}]


async def unknown_task(visitor: Visitor) -> Any:
    answers: Message = {"inputResponses": {}}
    return [
        await refused(visitor.request(f"tasks/{verb}", taskId="no-such-task", **(answers if verb == "update" else {})))
        for verb in ("get", "update", "cancel", "result")
    ]


async def task_needs_the_capability(visitor: Visitor) -> Any:
    task = await visitor.call("slow_compute", as_task=True, seconds=600)
    bare = visitor.params({"taskId": task["taskId"]}, {})
    return await refused(visitor.client.request("tasks/get", bare))


# -- tasks of 2025-11-25 ---------------------------------------------------------------------------------------------


async def older_task_completes(visitor: Visitor) -> Any:
    task = (await visitor.call("slow_compute", as_task=True, seconds=0.2))["task"]
    done = await visitor.request("tasks/result", taskId=task["taskId"])
    seen = await visitor.request("tasks/get", taskId=task["taskId"])  # after the result, the status is certain
    assert done["_meta"][META + "related-task"]["taskId"] == task["taskId"]
    link = done["content"][1]["uri"]
    return [task, seen, done, told(await visitor.request("resources/read", uri=link))]


async def older_task_is_cancelled(visitor: Visitor) -> Any:
    task = (await visitor.call("slow_compute", as_task=True, seconds=600))["task"]
    gone = await visitor.request("tasks/cancel", taskId=task["taskId"])
    heard = await visitor.client.heard("notifications/tasks/status")
    assert heard[-1]["taskId"] == gone["taskId"] == task["taskId"]
    return [gone, heard[-1]]


async def older_tasks_are_listed(visitor: Visitor) -> Any:
    task = (await visitor.call("slow_compute", as_task=True, seconds=600))["task"]
    listed = (await visitor.request("tasks/list"))["tasks"]
    return [one for one in listed if one["taskId"] == task["taskId"]]


async def older_unknown_task(visitor: Visitor) -> Any:
    return [
        await refused(visitor.request(f"tasks/{verb}", taskId="no-such-task")) for verb in ("get", "result", "cancel")
    ]


BOTH: tuple[Check, ...] = (
    app_opens, links_lead_back,
    skills_are_listed, skills_are_got, skill_files_are_read, skill_folders_are_read, unknown_skill,
    events_are_listed, events_are_polled, events_are_streamed, webhooks, unknown_event,
)  # fmt: skip
NEWER: tuple[Check, ...] = (
    task_completes, task_reports_failures, task_asks, task_after_questions, task_is_cancelled, task_is_told,
    unknown_task, task_needs_the_capability,
)  # fmt: skip
OLDER: tuple[Check, ...] = (
    older_task_completes, older_task_is_cancelled, older_tasks_are_listed, older_unknown_task,
)  # fmt: skip
