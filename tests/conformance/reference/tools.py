"""The reference server's tools, one function each, as described by the scenarios that call them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.conformance.reference.asking import Asking, InputWanted
from tests.conformance.reference.samples import (
    AUDIO,
    COLOR,
    CONFIRM,
    DEFAULTS,
    ENUMS,
    IMAGE,
    NAME,
    RICH_SCHEMA,
    ROOTS,
    STRING,
    WHO,
    Json,
    embedded,
    sampling,
    text,
)

STEP_S = 0.05  # pause between two messages of a slow tool, as the scenarios require
# longer than the 0.1 s after which the gateway opens a stream, so that the client can resume this stream
AWAY_S = 0.6
Tool = Callable[[Asking], Awaitable[Json]]

TOOLS: dict[str, tuple[Json, Tool]] = {}  # name -> the definition and the function


def tool(description: str, schema: Json | None = None) -> Callable[[Tool], Tool]:
    """Register a function as a tool under its own name. Without `schema`, it takes no arguments."""

    def register(function: Tool) -> Tool:
        name = function.__name__
        definition = {"name": name, "description": description, "inputSchema": schema or {"type": "object"}}
        TOOLS[name] = (definition, function)
        return function

    return register


def needing(**properties: Json) -> Json:
    """Return the schema of a tool that requires all of these arguments."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def said(*words: str) -> Json:
    """Return a result with one text block for each string."""
    return {"content": [text(part) for part in words]}


# -- content ---------------------------------------------------------------------------------------------------------


@tool("Answers with a text")
async def test_simple_text(asking: Asking) -> Json:
    return said("This is a simple text response for testing.")


@tool("Answers with an image")
async def test_image_content(asking: Asking) -> Json:
    return {"content": [IMAGE]}


@tool("Answers with audio")
async def test_audio_content(asking: Asking) -> Json:
    return {"content": [AUDIO]}


@tool("Answers with an embedded resource")
async def test_embedded_resource(asking: Asking) -> Json:
    return {"content": [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]}


@tool("Answers with text, an image and a resource")
async def test_multiple_content_types(asking: Asking) -> Json:
    resource = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return {"content": [text("Multiple content types test:"), IMAGE, resource]}


@tool("Always fails")
async def test_error_handling(asking: Asking) -> Json:
    return {"isError": True, **said("This tool intentionally returns an error for testing")}


@tool("Has a schema with the keywords of JSON Schema 2020-12", RICH_SCHEMA)
async def json_schema_2020_12_tool(asking: Asking) -> Json:
    return said(json.dumps(asking.arguments))


@tool(
    "Has an argument that is repeated in a header",
    {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": STRING},
        "required": ["region"],
    },
)
async def test_x_mcp_header(asking: Asking) -> Json:
    return said(f"region={asking.arguments['region']}")


# -- notifications during a call -------------------------------------------------------------------------------------


@tool("Logs three messages")
async def test_tool_with_logging(asking: Asking) -> Json:
    await asking.log("Tool execution started")
    await anyio.sleep(STEP_S)
    await asking.log("Tool processing data")
    await anyio.sleep(STEP_S)
    await asking.log("Tool execution completed")
    return said("Logged three messages")


@tool("Logs a message")
async def test_logging_tool(asking: Asking) -> Json:
    await asking.log("Called")
    return said("Logged a message")


@tool("Reports its progress")
async def test_tool_with_progress(asking: Asking) -> Json:
    await asking.progress(0, 100)
    await anyio.sleep(STEP_S)
    await asking.progress(50, 100)
    await anyio.sleep(STEP_S)
    await asking.progress(100, 100)
    return said("Done")


@tool("Closes the stream of its answer before it answers")
async def test_reconnection(asking: Asking) -> Json:
    if asking.context.close_sse_stream is not None:
        await asking.context.close_sse_stream()
    await anyio.sleep(AWAY_S)
    return said("Answered after the reconnection")


# -- questions -------------------------------------------------------------------------------------------------------


@tool("Asks the client's model", needing(prompt=STRING))
async def test_sampling(asking: Asking) -> Json:
    answers = await asking.ask({"sample": sampling(asking.arguments["prompt"])})
    return said(f"LLM response: {json.dumps(answers['sample'].get('content'))}")


@tool("Asks the user", needing(message=STRING))
async def test_elicitation(asking: Asking) -> Json:
    question = {**WHO, "params": {**WHO["params"], "message": asking.arguments["message"]}}
    answers = await asking.ask({"who": question})
    return said(f"User response: {json.dumps(answers['who'])}")


async def _elicited(asking: Asking, question: Json) -> Json:
    answer = (await asking.ask({"values": question}))["values"]
    return said(f"Elicitation completed: action={answer.get('action')}, content={json.dumps(answer.get('content'))}")


@tool("Asks for values that have defaults")
async def test_elicitation_sep1034_defaults(asking: Asking) -> Json:
    return await _elicited(asking, DEFAULTS)


@tool("Asks for a choice in each of the five forms")
async def test_elicitation_sep1330_enums(asking: Asking) -> Json:
    return await _elicited(asking, ENUMS)


@tool("Asks the user while it streams")
async def test_streaming_elicitation(asking: Asking) -> Json:
    await asking.progress(0, 1)
    answers = await asking.ask({"name": NAME})
    return said(json.dumps(answers))


@tool("Needs a client whose model can be asked")
async def test_missing_capability(asking: Asking) -> Json:
    if not asking.can("sampling/createMessage"):
        data: Json = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling", data)
    return said("The client can sample")


@tool("Asks for a name")
async def test_input_required_result_elicitation(asking: Asking) -> Json:
    answers = await asking.ask({"user_name": NAME})
    return said(f"Hello, {answers['user_name'].get('content', {}).get('name')}!")


@tool("Asks the client's model for a capital")
async def test_input_required_result_sampling(asking: Asking) -> Json:
    answers = await asking.ask({"capital_question": sampling("What is the capital of France?")})
    return said(json.dumps(answers["capital_question"].get("content")))


@tool("Asks for the client's roots")
async def test_input_required_result_list_roots(asking: Asking) -> Json:
    answers = await asking.ask({"client_roots": ROOTS})
    return said(json.dumps(answers["client_roots"].get("roots")))


@tool("Asks, and checks what it gave the client to come back with")
async def test_input_required_result_request_state(asking: Asking) -> Json:
    state = asking.state()
    await asking.ask({"confirm": CONFIRM}, "confirming")
    return said("state-ok" if state == "confirming" else "state-missing")


@tool("Asks, and refuses what it did not give the client to come back with")
async def test_input_required_result_tampered_state(asking: Asking) -> Json:
    return await test_input_required_result_request_state(asking)


@tool("Asks three questions of three kinds at once")
async def test_input_required_result_multiple_inputs(asking: Asking) -> Json:
    asking.state()
    questions = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
    return said(json.dumps(await asking.ask(questions, "asked")))


@tool("Asks twice")
async def test_input_required_result_multi_round(asking: Asking) -> Json:
    if asking.modern and asking.state() == "second":
        answers = await asking.ask({"step2": COLOR}, "second")
        return said(json.dumps(answers))
    await asking.ask({"step1": NAME}, "first")
    if asking.modern:
        raise InputWanted({"step2": COLOR}, "second")
    return said(json.dumps(await asking.ask({"step2": COLOR})))


@tool("Asks only what the client announced that it answers")
async def test_input_required_result_capabilities(asking: Asking) -> Json:
    questions = {"name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
    able = {key: question for key, question in questions.items() if asking.can(question["method"])}
    return said(json.dumps(await asking.ask(able))) if able else said("The client answers no questions")
