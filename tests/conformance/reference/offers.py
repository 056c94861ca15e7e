"""The reference server's prompts, resources and completions."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable

import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.conformance.reference.asking import Asking
from tests.conformance.reference.samples import CONTEXT, IMAGE, PNG, Json, embedded, text

Prompt = Callable[[Asking], Awaitable[Json]]
PROMPTS: dict[str, tuple[Json, Prompt]] = {}
WORDS = ("testValue1", "testValue2", "paris", "park", "party")  # the possible completions of any argument
TEMPLATE = re.compile(r"test://template/([^/]+)/data")


def prompt(description: str, *arguments: str) -> Callable[[Prompt], Prompt]:
    """Register a function as a prompt under its own name, with these required arguments."""

    def register(function: Prompt) -> Prompt:
        name = function.__name__
        definition: Json = {"name": name, "description": description}
        if arguments:
            definition["arguments"] = [{"name": one, "description": one, "required": True} for one in arguments]
        PROMPTS[name] = (definition, function)
        return function

    return register


def user(*contents: Json) -> Json:
    """Return a prompt's result that consists of user messages."""
    return {"messages": [{"role": "user", "content": content} for content in contents]}


@prompt("A text")
async def test_simple_prompt(asking: Asking) -> Json:
    return user(text("This is a simple prompt for testing."))


@prompt("A text with two arguments in it", "arg1", "arg2")
async def test_prompt_with_arguments(asking: Asking) -> Json:
    given = asking.arguments
    return user(text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"))


@prompt("A resource to look at", "resourceUri")
async def test_prompt_with_embedded_resource(asking: Asking) -> Json:
    uri = asking.arguments.get("resourceUri", "")
    resource = embedded(uri, "text/plain", "Embedded resource content for testing.")
    return user(resource, text("Please process the embedded resource above."))


@prompt("An image to look at")
async def test_prompt_with_image(asking: Asking) -> Json:
    return user(IMAGE, text("Please analyze the image above."))


@prompt("A text that the user is asked for")
async def test_input_required_result_prompt(asking: Asking) -> Json:
    answers = await asking.ask({"user_context": CONTEXT})
    return user(text(f"Use this context: {json.dumps(answers['user_context'].get('content'))}"))


def _resource(uri: str, mime_type: str, description: str) -> Json:
    return {"uri": uri, "name": uri.rpartition("/")[2], "description": description, "mimeType": mime_type}


RESOURCES: list[Json] = [
    _resource("test://static-text", "text/plain", "A text"),
    _resource("test://static-binary", "image/png", "An image"),
    _resource("test://watched-resource", "text/plain", "A text that may be subscribed to"),
]
TEMPLATES: list[Json] = [
    {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data of one id",
        "mimeType": "application/json",
    }
]
_CONTENTS: dict[str, Json] = {
    "test://static-text": {"text": "This is the content of the static text resource."},
    "test://static-binary": {"blob": PNG},
    "test://watched-resource": {"text": "This is the content of the watched resource."},
}


def read(uri: str) -> Json:
    """Return the content of a resource. Raises MCPError if it does not exist."""
    known = {resource["uri"]: resource["mimeType"] for resource in RESOURCES}
    if uri in known:
        return {"contents": [{"uri": uri, "mimeType": known[uri], **_CONTENTS[uri]}]}
    if (found := TEMPLATE.fullmatch(uri)) is not None:
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]}
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


def completed(value: str) -> Json:
    """Return the completions for an argument that begins with `value`."""
    fitting = [word for word in WORDS if word.lower().startswith(value.lower())]
    return {"completion": {"values": fitting, "total": len(fitting), "hasMore": False}}
