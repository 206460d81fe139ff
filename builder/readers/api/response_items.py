"""Converts items of the Responses API, as Codex stores them too, to parts of turns.

Source: docs/formats/openai-responses.md, docs/formats/codex.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from builder.conversation import (
    Content,
    Data,
    Json,
    Media,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.jsonio import json_type
from builder.readers.toolkit.chat_messages import as_harness, qualified, text_or_data
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, json_in_text, name_or_none
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, PART_KEYS, unknown_in

_OWN_ID = re.compile(r"msg_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
"""Calls that the client answers."""

OUTPUTS = frozenset({
    "function_call_output", "custom_tool_call_output", "local_shell_call_output",
    "tool_search_output",
})  # fmt: skip

_SERVER_CALLS = frozenset({"web_search_call", "image_generation_call"})
"""Calls that the provider runs inside the model's response; the log lacks their results."""

COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Summaries that only the provider can read, in place of the history before them."""

SILENT = frozenset({"ghost_snapshot", "compaction_trigger", "configuration_update"})
"""Items without text of the conversation; a configuration_update has the effort of thinking."""

ITEMS = {"message", "reasoning", "agent_message", "additional_tools"}.union(
    CALLS, OUTPUTS, _SERVER_CALLS, COMPACTIONS, SILENT
)

ABORTED = "aborted"
"""The output that Codex sends for a call that has none.

Source: ensure_call_outputs_present in codex-rs/core/src/context_manager/normalize.rs.
"""

Item = dict[str, Json]

_KEYS = MESSAGE_KEYS | PART_KEYS | {
    "internal_chat_message_metadata_passthrough", "action", "execution", "tools", "author",
    "recipient", "end_turn",
}  # fmt: skip
"""Keys of items that are known."""

_HARNESS_PREFIXES = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions for",
    "<permissions instructions>", "<skills_instructions>", "<turn_aborted>",
    "<user_shell_command>", "<subagent_notification>", "<skill>",
)  # fmt: skip

_INTERRUPTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted by user(?: after [\d.]+s)?")
_DENIED = re.compile(r"\S+(?: \S+)? rejected by user.*", re.DOTALL)
_TOTAL = re.compile(r"Total output lines: (\d+)\n\n?")
_EXIT_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)$", re.MULTILINE)


def content_parts(content: Json) -> list[Part]:
    """Returns the parts of a message's content."""
    if isinstance(content, str):
        return [Text(content)]
    parts: list[Part] = []
    for value in as_list(content):
        item = as_dict(value)
        kind = as_str(item.get("type")) or json_type(value)
        parts.append(_text_or_media(item) or unknown_part(kind))
    return parts


def _text_or_media(item: Item) -> Text | Media | None:
    match item.get("type"):
        case "input_text" | "output_text" | "text":
            return Text(as_str(item.get("text")))
        case "refusal":
            return Text(as_str(item.get("refusal")))
        case "input_image" | "input_audio" | "input_file" as kind:
            return Media(kind.removeprefix("input_"))
        case _:
            return None


def user_parts(item: Item, typed: frozenset[str] | None) -> list[Part]:
    """Returns a user message's parts, with the program's text marked as harness.

    `typed` contains the texts that the user typed according to the log's events; None if the log
    has none for this message. Provenance logged with the text takes precedence.
    """
    parts = content_parts(item.get("content"))
    texts = [part.text for part in parts if isinstance(part, Text)]
    is_typed = typed is not None and any(
        text in typed for text in (*texts, "".join(texts), "\n".join(texts))
    )
    passthrough = as_dict(item.get("internal_chat_message_metadata_passthrough"))
    metadata = as_list(passthrough.get("content_item_metadata"))
    marked: list[Part] = []
    for at, part in enumerate(parts):
        if not isinstance(part, Text):
            marked.append(part)
            continue
        entry = as_dict(metadata[at]) if at < len(metadata) else {}
        origin = as_dict(entry.get("provenance")).get("type")
        if isinstance(origin, str):
            harness = origin != "user"
        elif is_typed:
            harness = False
        else:
            harness = typed is not None or part.text.lstrip().startswith(_HARNESS_PREFIXES)
        marked.append(Text(part.text, harness=harness))
    return marked


def unknown(item: Item) -> tuple[str, ...]:
    """Returns the keys of an item and of its content that hold text and are not known."""
    return unknown_in(item, _KEYS)


def notes_abort(part: Part) -> bool:
    """Returns whether a part is the program's note that the user interrupted the answer."""
    return isinstance(part, Text) and part.text.lstrip().startswith("<turn_aborted>")


def thoughts(item: Item) -> list[Part]:
    """Returns the reasoning in clear text: the thought itself if it is logged, else its summary.

    `encrypted_content` is ignored.
    """
    for key in ("content", "summary"):
        texts = [as_str(value, "text") for value in as_list(item.get(key))]
        if any(texts):
            return [Reasoning(text, key == "summary") for text in texts if text]
    return []


def call(item: Item) -> ToolCall:
    """Returns an item of CALLS as a call.

    The raw text that a custom tool takes becomes its one argument `input`. A local shell call has
    no name of its own; its arguments are its action.
    """
    name = qualified(item.get("namespace"), as_str(item.get("name")))
    arguments: Json = item.get("arguments")
    match item.get("type"):
        case "custom_tool_call":
            arguments = {"input": item.get("input")}
        case "local_shell_call":
            name, arguments = "local_shell", item.get("action")
        case "tool_search_call":
            name = "tool_search"
        case _:
            pass
    return ToolCall(name, arguments, call_id(item))


def call_id(item: Item) -> str | None:
    """Returns the id shared by a call and its output; old local shell calls use the item's id."""
    call_id = name_or_none(item.get("call_id"))
    if call_id is None and as_str(item.get("type")).startswith("local_shell_call"):
        return name_or_none(item.get("id"))
    return call_id


def result(item: Item) -> ToolResult:
    """Returns the output as the model saw it; a string is not decoded even if it is JSON."""
    if item.get("type") == "tool_search_output":
        return ToolResult((Data(item.get("tools"), compact=True),), call_id(item))
    output = item.get("output")
    content: tuple[Content, ...] = text_or_data(output, compact=True)
    if isinstance(output, list):
        content = tuple(
            _text_or_media(as_dict(value)) or Data(value, compact=True) for value in output
        )
    text = as_str(output)
    interrupted = bool(_INTERRUPTED.fullmatch(text))
    return ToolResult(
        content,
        call_id(item),
        is_error=not interrupted and _failed(text),
        is_denied=bool(_DENIED.fullmatch(text)),
        is_interrupted=interrupted,
    )


def is_unasked(item: Item) -> bool:
    """Returns whether an output names its tool, but no call: a tool reported by itself (0.171)."""
    return "name" in item and call_id(item) is None and item.get("type") != "tool_search_output"


def unasked(item: Item) -> tuple[Part, ...]:
    """Returns the text of an output without a call, which a sample cannot show as a result."""
    return as_harness(result(item).content)


def _failed(output: str) -> bool:
    """Returns whether a command's output states an exit code other than 0.

    Older builds write {"output", "metadata": {"exit_code"}}; later builds write a header that ends
    with the line "Output:".
    """
    if output.startswith("{"):
        code = as_dict(json_in_text(output), "metadata").get("exit_code")
        return isinstance(code, int) and code != 0
    header, mark, _ = output.partition("\nOutput:\n")
    match = _EXIT_CODE.search(header) if mark else None
    return match is not None and match[1] != "0"


SHELLS = frozenset({"shell", "container.exec", "local_shell", "apply_patch"})
"""Tools with output that some builds log as JSON and send as text (see `as_sent`)."""


def as_sent(answer: ToolResult) -> ToolResult:
    """Returns a result of a SHELLS tool as sent by builds in which apply_patch takes text.

    Source: reserialize_shell_outputs in codex-rs/core/src/client_common.rs, seen in 0.77.
    """
    first = answer.content[0] if len(answer.content) == 1 else None
    logged = as_dict(json_in_text(first.text)) if isinstance(first, Text) else {}
    metadata = as_dict(logged.get("metadata"))
    output, code = logged.get("output"), metadata.get("exit_code")
    seconds = metadata.get("duration_seconds")
    if not (isinstance(output, str) and isinstance(code, int) and isinstance(seconds, int | float)):
        return answer
    lines = [f"Exit code: {code}", f"Wall time: {seconds:g} seconds"]
    if total := _TOTAL.match(output):
        lines.append(f"Total output lines: {total[1]}")
        output = output[total.end() :]
    return replace(answer, content=(Text("\n".join([*lines, "Output:", output])),))


def runs_on_server(item: Item) -> bool:
    """Returns whether the provider ran the item inside the model's response."""
    kind = as_str(item.get("type"))
    if kind in ("tool_search_call", "tool_search_output"):
        return item.get("execution") == "server"
    return kind in _SERVER_CALLS


def definitions(tools: Json, namespace: Json = None) -> Iterator[Json]:
    """Yields tool definitions as logged; those in a namespace get qualified names."""
    for value in as_list(tools):
        spec = as_dict(value)
        if namespace is None and spec.get("type") == "namespace":
            yield from definitions(spec.get("tools"), as_str(spec.get("name")))
            continue
        space = namespace or spec.get("namespace")
        if isinstance(space, str) and space:
            own = {key: inner for key, inner in spec.items() if key != "namespace"}
            yield {**own, "name": qualified(space, as_str(spec.get("name")))}
        else:
            yield value


def is_cut(item: Item) -> bool:
    """Returns whether the model's item was cut off, at the limit of its length (0.171)."""
    is_own = item.get("type") in ("message", "function_call", "custom_tool_call")
    return is_own and item.get("status") == "incomplete"


def with_tools(known: Sequence[Json], added: Json) -> list[Json]:
    """Returns the tools with those added; one of the same name takes the place of the earlier."""
    tools = {as_str(tool, "name"): tool for tool in known}
    return [*(tools | {as_str(tool, "name"): tool for tool in definitions(added)}).values()]


def is_from_program(message: Item) -> bool:
    """Returns whether the program wrote a message of the model: the result of a review (0.171).

    It has an id of the program's own form and no status; those of the provider have one.
    """
    return "status" not in message and _OWN_ID.fullmatch(as_str(message.get("id"))) is not None
