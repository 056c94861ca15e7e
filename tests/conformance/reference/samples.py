"""The values in the reference server's tools, prompts and resources, as the suite's scenarios require them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

# A red pixel, and an audio file without samples.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


def text(words: str) -> Json:
    """Return a text content block."""
    return {"type": "text", "text": words}


def embedded(uri: str, mime_type: str, words: str) -> Json:
    """Return an embedded text resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


IMAGE: Json = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO: Json = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}


def form(message: str, properties: Json, required: list[str] | None = None) -> Json:
    """Return a request for elicitation with a form."""
    schema: Json = {"type": "object", "properties": properties}
    if required is not None:
        schema["required"] = required
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(prompt: str, max_tokens: int = 100) -> Json:
    """Return a sampling request with one user message."""
    message = {"role": "user", "content": text(prompt)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": max_tokens}}


ROOTS: Json = {"method": "roots/list", "params": {}}

STRING: Json = {"type": "string"}
WHO = form(
    "Who are you?",
    {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    ["username", "email"],
)
DEFAULTS = form(
    "Check these values",
    {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
)
_OPTIONS = ["option1", "option2", "option3"]


def _titled(*titles: str) -> list[Json]:
    return [{"const": f"value{number}", "title": title} for number, title in enumerate(titles, 1)]


ENUMS = form(
    "Choose",
    {
        "untitledSingle": {"type": "string", "enum": _OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _titled("First Option", "Second Option", "Third Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")}},
    },
)
NAME = form("What is your name?", {"name": STRING}, ["name"])
COLOR = form("Step 2: What is your favorite color?", {"color": STRING}, ["color"])
CONFIRM = form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])
CONTEXT = form("What context should the prompt use?", {"context": STRING}, ["context"])

# Every keyword of JSON Schema 2020-12 that the suite looks for (SEP-1613, SEP-2106).
RICH_SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}},
    },
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
