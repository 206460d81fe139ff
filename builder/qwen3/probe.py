"""Examines a chat template by rendering small conversations: which style does it have?

Known texts need no probes (`builder.qwen3.templates`). The result need not describe a text fully:
every sample is compared with the template's own rendering, so whatever a template does besides is
found there and rejected, never trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from builder.conversation import Json
from builder.jsonio import dumps
from builder.qwen3.dialect import Dialect
from builder.qwen3.json_calls import JSON
from builder.qwen3.style import CHATML, Markers, Style, Thoughts, ToolsText
from builder.qwen3.templates import TEMPLATES
from builder.qwen3.xml_calls import XML_JSON, XML_PYTHON

Message = dict[str, Any]


class Render(Protocol):
    """Renders messages and definitions with the template. Raises its exceptions."""

    def __call__(self, messages: Sequence[Message], tools: Sequence[Json] | None, /) -> str:
        """Returns the rendering."""


class UnsupportedTemplate(ValueError):
    """A template that writes calls, turns or definitions in a form that is not a target."""


_MARKERS = (CHATML, Markers("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"))

_DIALECTS = (
    ("<|channel|>", "harmony (gpt-oss)"),
    ("<arg_key>", "GLM 4.5 and later (<arg_key>, <arg_value>)"),
    ("\uff5cDSML\uff5c", "DSML (DeepSeek V3.2 and later)"),
    ("<\uff5ctool\u2581calls\u2581begin\uff5c>", "DeepSeek V3 and R1"),
    ("<|tool_calls_section_begin|>", "Kimi K2"),
    ("<|tool_call>", "Gemma 4"),
    ("<start_function_call>", "FunctionGemma"),
    ("[TOOL_CALLS]", "Mistral"),
    ("<|python_tag|>", "Llama 3"),
    ("<minimax:tool_call>", "MiniMax"),
    ("<|tool_call_start|>", "LFM2"),
    ("<TOOLCALL>", "Nemotron Nano 2"),
    ("<|tool_list_start|>", "LFM2"),
    ("<function_calls>", "Anthropic-like XML"),
    ("<start_of_turn>", "Gemma"),
    ("<|start_header_id|>", "Llama 3"),
)
"""(text in a template, the dialect that it shows), tried in order."""


def dialect_name(template: str) -> str | None:
    """Returns the name of the dialect of a text that is not a target's, as far as it is known."""
    return next((name for mark, name in _DIALECTS if mark in template), None)


USER: Message = {"role": "user", "content": "QUERY"}
PLAIN: Message = {"role": "assistant", "content": "ANSWER"}
TOOL: Json = {
    "type": "function",
    "function": {"name": "NAME", "parameters": {"type": "object"}, "strict": True},
}


def _called(content: str, *arguments: Json) -> Message:
    calls = [
        {"type": "function", "function": {"name": "NAME", "arguments": item}} for item in arguments
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def conversation(rounds: int) -> tuple[list[Message], list[Json]]:
    """Returns the messages and definitions of a long conversation with calls."""
    tool = {"role": "tool", "content": "RESULT"}
    return [USER, _called("TEXT", {"a": 1}), tool, PLAIN] * rounds, [TOOL]


def style_of(render: Render) -> Style:
    """Returns the style of a template. Raises UnsupportedTemplate, and what the template raises."""
    known = (template.style for template in TEMPLATES.values())
    markers = _markers(render)
    dialect = _dialect(render)
    before, between = _gaps(render, dialect, markers)
    style = Style(
        dialect=dialect,
        markers=markers,
        before_call=before,
        between_calls=between,
        response_edges=_edges(render, markers),
        trims=_trims(render, markers),
        needs_query=_needs_query(render),
    )
    style = _system(render, style, list(dict.fromkeys(item.tools for item in known)))
    return _thoughts(render, style)


def _markers(render: Render) -> Markers:
    text = render([USER, PLAIN], None)
    for markers in _MARKERS:
        if f"{markers.header('user')}QUERY{markers.end}\n" in text:
            return markers
    raise UnsupportedTemplate("its turns are neither ChatML nor Granite's")


def _dialect(render: Render) -> Dialect:
    text = render([USER, _called("", {"a": True, "b": "t"})], [TOOL])
    for dialect in (JSON, XML_JSON, XML_PYTHON):
        if '"a": true' in text if dialect is JSON else _written(dialect) in text:
            return dialect
    raise UnsupportedTemplate("its calls are neither JSON in <tool_call> nor <function=…>")


def _written(dialect: Dialect) -> str:
    value = "true" if dialect is XML_JSON else "True"
    return f"<function=NAME>\n<parameter=a>\n{value}\n</parameter>\n"


def _gaps(render: Render, dialect: Dialect, markers: Markers) -> tuple[str, str]:
    """Returns what separates text and call, and two calls."""
    text = render([USER, _called("TEXT", {}, {})], [TOOL]).rpartition("TEXT")[2]
    before, _, rest = text.partition("<tool_call>")
    between = rest.partition("</tool_call>")[2].partition("<tool_call>")[0]
    if before.strip() or between.strip():
        raise UnsupportedTemplate("it writes text between calls")
    return before, between


def _edges(render: Render, markers: Markers) -> tuple[str, str]:
    tool = {"role": "tool", "content": "RESULT"}
    text = render([USER, _called("", {}), tool, PLAIN], [TOOL])
    before, separator, after = text.partition("<tool_response>\nRESULT\n</tool_response>")
    lead = before.rpartition(markers.header("user"))[2]
    tail = after.partition(markers.end)[0]
    if not separator or lead.strip() or tail.strip():
        raise UnsupportedTemplate("its tool responses are not <tool_response> in a user turn")
    return lead, tail


def _trims(render: Render, markers: Markers) -> Any:
    padded = {"role": "user", "content": " QUERY "}
    if " QUERY " not in render([padded, PLAIN], None):
        return "all"
    text = render([USER, _called(" TEXT ", {})], [TOOL])
    return "none" if " TEXT " in text else "called"


def _needs_query(render: Render) -> bool:
    answer = {"role": "user", "content": "<tool_response>\nRESULT\n</tool_response>"}
    try:
        render([answer, PLAIN], None)
    except Exception:  # any exception is a refusal
        return True
    return False


def _system_text(render: Render, markers: Markers, messages: Sequence[Message], tools: Any) -> Any:
    text = render(messages, tools)
    header = markers.header("system")
    return text.removeprefix(header).partition(markers.end)[0] if text.startswith(header) else None


def _system(render: Render, style: Style, known: Sequence[ToolsText]) -> Style:
    """Returns the style with what the template writes into the system turn."""
    messages = ({"role": "system", "content": "SYSTEM"}, USER, PLAIN)
    bare = _system_text(render, style.markers, messages[1:], None)
    alone = _system_text(render, style.markers, messages, None) or ""
    both = _system_text(render, style.markers, messages, [TOOL]) or ""
    lonely = _system_text(render, style.markers, messages[1:], [TOOL]) or ""
    preface = alone.partition("SYSTEM")[0].removesuffix("\n\n")
    if preface and bare == preface:
        bare = None
        both, lonely = (item.removeprefix(f"{preface}\n\n") for item in (both, lonely))
    else:
        preface = ""
    for tools in known:
        listing = f"{tools.begin}\n{tools.write(dumps(TOOL))}{tools.end}"
        if listing in both:
            first = both.startswith(tools.begin)
            lead = lonely.partition(tools.begin)[0]
            tools = replace(tools, first=first)  # noqa: PLW2901 - refined
            return replace(
                style, tools=tools, preface=preface, default_system=bare, tools_lead=lead
            )
    definition = "\n" + dumps(TOOL)
    begin, separator, end = both.partition(definition)
    if not separator or "SYSTEM" not in begin + end:
        raise UnsupportedTemplate("its tools block has no line of JSON for each definition")
    first = "SYSTEM" in end
    if first:
        tools = ToolsText(begin, end.rpartition("\n\nSYSTEM")[0], first=True)
        return replace(style, tools=tools, preface=preface, default_system=bare)
    begin = begin.rpartition("SYSTEM\n\n")[2]
    lead = lonely.partition(begin)[0]
    tools = ToolsText(begin, end)
    return replace(style, tools=tools, preface=preface, default_system=bare, tools_lead=lead)


def _thoughts(render: Render, style: Style) -> Style:
    """Returns the style with its treatment of thoughts."""
    block = "<think>\nTHOUGHT\n</think>\n\n"
    inside: Message = {"role": "assistant", "content": f"{block}ANSWER"}
    beside: Message = {**PLAIN, "reasoning_content": "THOUGHT"}
    empty = "<think>\n\n</think>\n\n"
    loop = [USER, PLAIN, {"role": "tool", "content": "RESULT"}, PLAIN]
    blocks = render(loop, None).count(empty)
    if not blocks:  # text in front of "ANSWER" is not touched, or cut off
        if block in render([USER, beside], None) and block in render([USER, inside], None):
            style = replace(style, fills=False)
            return replace(style, thoughts=_shown(render, beside))
        if "THOUGHT" in render([USER, inside, USER], None):
            return replace(style, thoughts=Thoughts.verbatim)
        is_kept = "THOUGHT" in render([USER, inside], None)
        return replace(style, thoughts=Thoughts.last if is_kept else Thoughts.dropped)
    reads = render([USER, inside], None)
    style = replace(style, beside=block in reads and empty in reads)
    if blocks == 1:
        return replace(style, thoughts=Thoughts.hybrid)
    return replace(style, thoughts=_shown(render, beside))


def _shown(render: Render, beside: Message) -> Thoughts:
    is_shown = "THOUGHT" in render([USER, beside, USER, PLAIN], None)
    return Thoughts.every if is_shown else Thoughts.current
