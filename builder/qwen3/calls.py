"""Dialects: how a call is written into assistant text and read back, as JSON or as XML-like tags.

JSON is that of Qwen3. Qwen3-Coder and Qwen3.5 and later write `<tool_call>`, `<function=NAME>`, and
for each argument `<parameter=KEY>`, the value and `</parameter>`, each on a line of its own. A text
value is written as it is, so its type is not in the text: a server's parser takes it from the
tool's schema. `loss` states which calls no such parser is certain to give back; docs/choose.md
has the rules. Constants: the chat template and tokenizer of Qwen/Qwen3-8B, in builder/qwen3/assets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from math import isfinite
from operator import attrgetter

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads, schema_type
from builder.sample import Call

ADDED_TOKENS: tuple[str, ...] = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""The added tokens of the Qwen3 tokenizer (tokenizer_config.json, `added_tokens_decoder`)."""

STRUCTURE_TOKENS: tuple[str, ...] = (
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""The added tokens that a target of this format must have."""

TOOLS_BEGIN = (
    "# Tools\n\n"
    "You may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n"
    "<tools>"
)
"""The template's text before the tool definitions (one per line) in the system turn."""

TOOLS_END = (
    "\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments"
    " within <tool_call></tool_call> XML tags:\n"
    "<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>"
)
"""The template's text after the tool definitions, at the end of the system turn."""

EMPTY_THINK = "<think>\n\n</think>\n\n"
"""The empty think block that the template writes before a last assistant turn without thoughts."""


class ParseFault(ValueError):
    """Text that no rendering contains: the `code` of the fault and its `offset` in code points."""

    def __init__(self, code: str, detail: str, offset: int = 0) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.offset = offset


@dataclass(frozen=True, slots=True)
class _CallText:
    """A call in a text: [start, end) includes its tags; `inner`, at `inner_at`, is between them."""

    start: int
    end: int
    inner: str
    inner_at: int


Properties = Mapping[str, Json]
"""{parameter: its schema} of one tool."""
Signatures = Mapping[str, Properties]
"""{tool: its parameters}: what a dialect without types needs to read a call."""


@dataclass(frozen=True, slots=True)
class LostCall:
    """Why a server's parser would not give a call back.

    code      `xml_types` (text that reads back as another value) or `xml_markup`
    reason    the parameter and its value
    readable  whether the text is one call again when it is read, though not the same call
    """

    code: str
    reason: str
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to write calls.

    name      its name in messages and documentation
    write     returns the text of a call, tags included
    find      yields the calls in a text from an offset on, in linear time
    read      returns the call at a match of `find`, types included. Raises ParseFault
    loss      returns why a server's parser would not give a call back, or None
    stray     returns why a server's parser would find a call in a text beside calls, or None
    served    returns the arguments as a server passes them to the template
    plain     whether `read` ignores the signatures, because the text has the types
    """

    name: str
    write: Callable[[Call], str]
    find: Callable[[str, int], Iterator[_CallText]]
    read: Callable[[_CallText, str, Signatures], Call]
    loss: Callable[[str, Mapping[str, Json], Signatures], LostCall | None]
    stray: Callable[[str], LostCall | None]
    served: Callable[[Call], Json]
    plain: bool = True


@lru_cache(maxsize=256)
def signatures(definitions: tuple[str, ...]) -> Signatures:
    """Returns the parameters of each tool from the JSON texts of the definitions."""
    known: dict[str, Properties] = {}
    for text in definitions:
        tool = loads(text)
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(name := function.get("name"), str):
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, dict) else None
            known.setdefault(name, properties if isinstance(properties, dict) else {})
    return known


_HEAD = re.compile(r'\{"name": "([^"\\\x00-\x1f]*)", "arguments": ')
_OPENS = re.compile(r"<tool_call>\s*(?=\{)")
_CLOSES = re.compile(r"\}\s*</tool_call>")
_BREAKS_JSON = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')

UNFIT_NAME = "a name that contains a quote, a backslash or a control character"


def call_text(call: Call) -> str:
    """Writes a call as the template does."""
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.text}}}\n</tool_call>'


def _find(
    text: str, start: int, *, opens: re.Pattern[str], closes: re.Pattern[str], kept: int = 0
) -> Iterator[_CallText]:
    r"""Yields the calls from `start` on, in linear time; `kept` characters of `closes` are theirs.

    Those in JSON are the matches of the pattern with which clients read calls,
    `<tool_call>\s*(\{[\s\S]*?\})\s*</tool_call>`. The pattern itself would scan to the end of the
    text for every opening tag that is never closed.
    """
    while begin := opens.search(text, start):
        end = closes.search(text, begin.end())
        if end is None:
            return
        inner = text[begin.end() : end.start() + kept]
        yield _CallText(begin.start(), end.end(), inner, begin.end())
        start = end.end()


def breaks_json(name: str) -> bool:
    """Returns whether a tool's name breaks the JSON of a call: the template does not escape it."""
    return _BREAKS_JSON.search(name) is not None


def _read_json(match: _CallText, content: str, _: Signatures) -> Call:
    """Returns the call at a match. Raises ParseFault (`calls`, `tools`)."""
    inner, start = match.inner, match.inner_at
    if content[match.start : match.end] != f"<tool_call>\n{inner}\n</tool_call>":
        detail = "no newline after <tool_call> or before </tool_call>"
        raise ParseFault("calls", detail, match.start)
    try:
        value = loads(inner)
    except JsonFault as fault:
        raise ParseFault("calls", f"the call is not JSON: {fault.detail}", start) from None
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise ParseFault("calls", "a call has only name and arguments", start)
    name, arguments = value["name"], value["arguments"]
    if isinstance(name, str) and breaks_json(name):
        raise ParseFault("tools", f"{name[:80]!r}: {UNFIT_NAME}", start)
    head = _HEAD.match(inner)
    if head is None or not isinstance(name, str) or head[1] != name:
        detail = 'a call begins with {"name": "…", "arguments": and a name without escapes'
        raise ParseFault("calls", detail, start)
    if not isinstance(arguments, dict):
        raise ParseFault("calls", "the arguments are not a JSON object", start + head.end())
    return Call(name, arguments, inner[head.end() : -1])


def is_canonical(call: Call) -> bool:
    """Returns whether the arguments are written as by `tojson`, except for escaped tokens."""
    return call.text == call.plain or call.plain == _ESCAPED_TOKEN.sub(
        lambda match: match[1] + str(loads('"' + match[2] + '"')), call.text
    )


_SPELLINGS = {
    "<": r"(?:<|\\u003[cC])",
    ">": r"(?:>|\\u003[eE])",
    "|": r"(?:\||\\u007[cC])",
    "/": r"(?:/|\\/|\\u002[fF])",
}
_ESCAPED_TOKEN = re.compile(
    r"(?<!\\)((?:\\\\)*)("
    + "|".join("".join(_SPELLINGS.get(char, char) for char in token) for token in ADDED_TOKENS)
    + ")"
)
"""Matches a control token in JSON text, plain or with escaped characters."""


def _served(call: Call) -> Json:
    """Returns the object, or its JSON text if `tojson` would write it differently.

    The template inserts a text verbatim.
    """
    return call.arguments if call.text == call.plain else call.text


def _nothing(*_: object) -> None:
    """Returns None: JSON gives back every value, and no trained text has the token of a call."""


JSON = Dialect(
    "JSON",
    call_text,
    partial(_find, opens=_OPENS, closes=_CLOSES, kept=1),
    _read_json,
    _nothing,
    _nothing,
    _served,
)

_XML_OPENS = re.compile(r"<tool_call>\s*<function=")
_XML_CLOSES = re.compile(r"</function>\s*</tool_call>")
_NAME = re.compile(r"[^<>\s\"'{}]+")
_KEY = re.compile(r"[^<>\n]+")
_PARAMETER = re.compile(r"<parameter=([^<>\n]+)>\n")
_PARAMETER_END = "\n</parameter>\n"
_MARKUP = re.compile(
    r"</?tool_call>|</?function[=>]|<\s*(?:/\s*)?parameter\s*[=>]"
    r"|</?think>|</?tool_response>|<\|"
)
"""What a value must not contain: no parser finds its end, or it is a control token."""

_BEGIN, _END = "<tool_call>\n<function=", "</function>\n</tool_call>"

Spelling = Callable[[Json], str]
"""Writes a value that is not text."""


def as_python(value: Json) -> str:
    """Writes objects and lists as JSON, and scalars as Python does: True, None."""
    return dumps(value) if isinstance(value, dict | list) else str(value)


def _write(call: Call, spelling: Spelling) -> str:
    texts = (
        f"<parameter={key}>\n{value if isinstance(value, str) else spelling(value)}\n</parameter>\n"
        for key, value in call.arguments.items()
    )
    return f"{_BEGIN}{call.name}>\n{''.join(texts)}{_END}"


def _read_xml(match: _CallText, content: str, known: Signatures) -> Call:
    """Returns the call at a match, its values typed by the tool's schema.

    Raises ParseFault (`calls`).
    """
    inner, inner_at = match.inner, match.inner_at
    whole = content[match.start : match.end]
    name, _, rest = inner.partition(">\n")
    if whole != f"{_BEGIN}{inner}{_END}" or not _NAME.fullmatch(name) or len(rest) == len(inner):
        raise ParseFault("calls", "the tags of a call are not on lines of their own", match.start)
    properties = known.get(name, {})
    arguments: dict[str, Json] = {}
    end = 0
    while end < len(rest):
        opens = _PARAMETER.match(rest, end)
        stop = rest.find(_PARAMETER_END, opens.end()) if opens else -1
        if opens is None or stop < 0 or opens[1] in arguments:
            detail = "a parameter is not written as <parameter=KEY>, a value, </parameter>"
            raise ParseFault("calls", detail, inner_at + len(inner) - len(rest) + end)
        arguments[opens[1]] = read_value(rest[opens.end() : stop], properties.get(opens[1]))
        end = stop + len(_PARAMETER_END)
    return Call.of(name, arguments)


_TEXT = frozenset({"string", "str", "text", "varchar", "char", "enum"})
_PYTHON: dict[str, Json] = {"True": True, "False": False, "None": None}


def read_value(text: str, schema: Json) -> Json:
    """Returns the value that a text means under its parameter's schema.

    Where only text is allowed it is the text. Otherwise it is the JSON value (or Python's True,
    False, None) if the schema allows its type or states none, else the text.
    """
    types = _types(schema)
    if types and types <= _TEXT:
        return text
    value = _decoded(text)
    numbers = {"number", "integer"}  # each is allowed where the other is
    allowed = types | numbers if types & numbers else types
    return (
        text if isinstance(value, str) or (types and schema_type(value) not in allowed) else value
    )


def _decoded(text: str) -> Json:
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        return loads(text)
    except JsonFault:
        return text


def _types(schema: Json) -> frozenset[str]:
    """Returns the types that a schema allows; empty if it states none."""
    if not isinstance(schema, dict):
        return frozenset()
    stated = schema.get("type")
    if isinstance(stated, str):
        return frozenset({stated.lower()})
    if isinstance(stated, list):
        return frozenset(item.lower() for item in stated if isinstance(item, str))
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list):
            types = [_types(option) for option in options]
            return frozenset().union(*types) if all(types) else frozenset()
    for key in ("enum", "const"):
        if key in schema:
            values = schema[key] if key == "enum" else [schema[key]]
            listed = values if isinstance(values, list) else []
            return frozenset(map(schema_type, listed))
    return frozenset()


def _by_first_type(text: str, schema: Json) -> Json:
    """Returns what SGLang's parser, and earlier ones of vLLM, make of a text: they use one type.

    They differ in unions: `_loss` asks only where both use the same type.
    """
    if text.lower() == "null":
        return None  # SGLang, for every type
    typed = schema.get("type") if isinstance(schema, dict) else None
    stated = "string" if typed is None else str(typed).strip().lower()
    if stated in _TEXT:
        return text
    if text.lower() == "none":
        return None
    try:
        if stated.startswith("int"):
            return int(text)
        if stated.startswith(("num", "float")):
            number = float(text)
            return int(number) if number.is_integer() else number
    except (ValueError, OverflowError):
        return text
    if stated in ("boolean", "bool"):
        return text.lower() == "true"
    if stated in ("object", "array"):
        with suppress(JsonFault):
            return loads(text)
    try:
        value: Json = ast.literal_eval(text) if len(text) < _LITERAL else text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value


def _by_rank(text: str, schema: Json) -> Json:
    """Returns what vLLM's parser makes of a text: it tries the types of the schema by rank."""
    types = _stated_types(schema)
    if types == _STRING:
        return text
    if "null" in types and text.lower() == "null":
        return None
    if types & {"integer", "number"}:
        with suppress(ValueError):
            return int(text)
    if "number" in types:
        with suppress(ValueError):
            if isfinite(number := float(text)):
                return int(number) if number.is_integer() else number
    if "boolean" in types and (word := text.lower().strip()) in _BOOLEANS:
        return _BOOLEANS[word]
    if "string" in types and not types & {"object", "array"}:
        return text
    try:
        return loads(text)
    except JsonFault:
        return text


_BOOLEANS: dict[str, Json] = {"true": True, "1": True, "false": False, "0": False}
_STRING = frozenset({"string"})
_NAMES = {**dict.fromkeys(_TEXT, "string"), "int": "integer", "float": "number", "bool": "boolean"}


def _stated_types(schema: Json) -> frozenset[str]:
    """Returns the types by which vLLM's parser reads: "string" for a part that states none."""
    if not isinstance(schema, dict):
        return _STRING
    stated, values = schema.get("type"), schema.get("enum")
    names = stated if isinstance(stated, list) else [stated]
    stated_names = {item.strip().lower() for item in names if isinstance(item, str)}
    types = {_NAMES.get(name, name) for name in stated_names}
    types.update(map(schema_type, values if isinstance(values, list) else ()))
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key)
        for part in parts if isinstance(parts, list) else ():
            types |= _stated_types(part)
    return frozenset(types) or _STRING


_LITERAL = 1 << 12
"""Code points up to which a text may be a literal of Python."""


def _xml_loss(
    name: str, arguments: Mapping[str, Json], known: Signatures, *, spelling: Spelling
) -> LostCall | None:
    """Returns why a parser would not give the call back, or None."""
    if not _NAME.fullmatch(name):
        reason = f"the name {name[:40]!r} cannot be written into <function=…>"
        return LostCall("xml_markup", reason, readable=False)
    properties: Properties = known.get(name, {})
    loss: LostCall | None = None
    for key, value in arguments.items():
        text = value if isinstance(value, str) else spelling(value)
        if not _KEY.fullmatch(key) or key != key.strip():
            reason = f"the key {key[:40]!r} cannot be written into <parameter=…>"
            return LostCall("xml_markup", reason, readable=False)
        if markup := _MARKUP.search(text):
            reason = f"{name}.{key}: the value contains {markup[0]}"
            return LostCall("xml_markup", reason, readable=False)
        if loss is not None:
            continue
        if text.startswith("\n") or text.endswith("\n"):
            loss = LostCall("xml_markup", f"{name}.{key}: the value begins or ends with a newline")
        elif not _survives(value, text, properties.get(key)):
            reason = f"{name}.{key}: {text[:40]!r} does not read back as {schema_type(value)}"
            loss = LostCall("xml_types", reason)
    return loss


def _survives(value: Json, text: str, schema: Json) -> bool:
    if not _is_same(value, read_value(text, schema)):
        return False
    if not _is_same(value, _by_rank(text, schema)):
        return False
    fields = schema if isinstance(schema, dict) else {}
    stated = fields.get("type")
    is_union = stated is None and ("anyOf" in fields or "oneOf" in fields)
    if is_union or isinstance(stated, list):
        return True
    return _is_same(value, _by_first_type(text, schema))


def _is_same(one: Json, two: Json) -> bool:
    """Returns whether two values are equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if one is two or (isinstance(one, str) and one == two):
        return True
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, int | float) and isinstance(two, int | float):
        return one == two
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_is_same, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return list(one) == list(two) and all(_is_same(one[key], two[key]) for key in one)
    return False


def _xml_stray(text: str) -> LostCall | None:
    """Returns why a text is read as a call: vLLM and llama.cpp need no `<tool_call>` before it."""
    if "<function=" not in text:
        return None
    return LostCall("xml_markup", "the text contains <function=, at which engines begin a call")


def _dialect(spelling: Spelling) -> Dialect:
    return Dialect(
        "XML",
        partial(_write, spelling=spelling),
        partial(_find, opens=_XML_OPENS, closes=_XML_CLOSES),
        _read_xml,
        partial(_xml_loss, spelling=spelling),
        _xml_stray,
        attrgetter("arguments"),
        plain=False,
    )


XML_PYTHON = _dialect(as_python)
"""Coder, Qwen3.5."""
XML_JSON = _dialect(dumps)
"""Coder-Next, Qwen3.6 and later."""
