"""Reads rows of published datasets whose calls, or whole chats, are text.

ToolACE, Glaive, Dolci, xLAM and Hammer: the pages in docs/formats say what is known of each.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from builder.conversation import (
    Content,
    Conversation,
    Data,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)  # fmt: skip
from builder.jsonio import JsonFault, dumps, json_type
from builder.problem import Problem
from builder.readers.datasets.chat_rows import (
    Tools,
    bad_tools,
    claims,
    column,
    of_rows,
    published,
)
from builder.readers.toolkit import literals
from builder.readers.toolkit.chat_messages import chat_message, text_or_data
from builder.readers.toolkit.comparison import calls, with_keys
from builder.readers.toolkit.literals import past_space, scan, value
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    name_of,
    one_or_many,
)  # fmt: skip
from builder.readers.toolkit.rows import row_name
from builder.readers.toolkit.tags import (
    call_of,
    functioncall_parts,
    take_listed_tools,
)  # fmt: skip
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import message_keys, noted


def results_in_text(
    text: str,
    called: Sequence[str],
    changes: Counter[str],
    wraps: Callable[[dict[str, Json]], bool],
    key: str,
) -> list[ToolResult]:
    """Returns the results in a text that is an object which wraps one, or a list of these.

    A tool's own output may look like that: `wraps` states whether an object wraps a result, which
    is its value at `key`, and there may not be more objects than calls. `called` are their names.
    Otherwise the text is the result. `changes` counts each that was taken out (`result_unwrapped`).
    """
    trial: Counter[str] = Counter()
    try:
        found = literals.items(text, trial) if text.lstrip()[:1] in ("{", "[") else []
    except JsonFault:
        found = []
    wrappers = [as_dict(item) for item in found]
    if not 0 < len(wrappers) <= len(called) or not all(map(wraps, wrappers)):
        return [ToolResult((Text(text),))]
    changes.update(trial)
    changes["result_unwrapped"] += len(wrappers)
    return [
        ToolResult(
            (Text(inner) if isinstance(inner := item[key], str) else Data(inner),),
            name=name if (name := as_str(item.get("name"))) in called else None,
        )
        for item in wrappers
    ]


# -- ToolACE: `[Market Trends API(type="INDEX", country="us"), other.f(a=1)]` ----------------------

_LIST = re.compile(
    r"(?:Here is|Below is) a list of functions in JSON format that you can (?:invoke|use)[:.]?\s*"
    r"(?=\[)",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"Should you decide to return the function call\(s\)\W*"
    r"|Put it in the format of \[[^\]]*\]\W*"
    r"|NO other text MUST be included\W*"
)
_EMPTY = re.compile(r"\(\s*\)")
_NAME = re.compile(r"[^()\[\]{}=\"',]+(?=\()")
_KEY = re.compile(r"\s*(?P<key>[^\s()\[\]{}=\"',]+)\s*=\s*")
_WORD = re.compile(r"[^\s()\[\]{}=\"',][^()\[\]{}=\"',]*")
_NEXT = re.compile(r"\s*(?P<mark>[,)\]])\s*")


def _is_toolace(row: dict[str, Json]) -> bool:
    """Returns whether a row has the dataset's roles and words; copies have another dialect."""
    roles = {as_str(item, "from") for item in as_list(row.get("conversations"))}
    known = roles <= {"user", "assistant", "tool", "system", ""}
    return known and _LIST.search(as_str(row.get("system"))) is not None


def _toolace(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    turns = row.get("conversations")
    if not isinstance(turns, list):
        return Problem("unknown_shape", where, "no conversations")
    changes: Counter[str] = Counter()
    problems: tuple[Problem, ...] = ()
    system, tools = as_str(row.get("system")), None
    try:
        system, tools = take_introduced_tools(system, changes)
    except JsonFault as fault:
        problems = (bad_tools(where, fault),)
    defined = [name for tool in tools or () if (name := name_of(as_dict(tool), "name"))]
    messages = [Message("system", (Text(system),))] if system else []
    called: list[str] = []
    for item in turns:
        turn = as_dict(item)
        source, text = as_str(turn.get("from")), turn.get("value")
        if not isinstance(text, str):
            role = source if source in ("tool", "assistant") else "user"
            messages.append(Message(role, (unknown_part(f"value {json_type(text)}"),)))
        elif source == "tool":  # the results of all calls of the previous turn
            results = results_in_text(
                text, called, changes, lambda one: one.keys() == {"name", "results"}, "results"
            )
            messages += [Message("tool", (one,)) for one in results]
        elif source == "assistant":
            parts = _toolace_parts(text, defined)
            called = [part.name for part in parts if isinstance(part, ToolCall)]
            messages.append(Message("assistant", tuple(parts)))
        else:
            messages.append(Message(source[:40] or "none", (Text(text),)))
    if not messages:
        return Problem("no_messages", where, "the row has no messages")
    name = row_name(where, row.get("id"), names)
    return published(name, where, messages, tools, changes, problems)


def take_introduced_tools(system: str, changes: Counter[str]) -> tuple[str, Tools]:
    """Returns the author's own words in ToolACE's system text, and its definitions or None.

    Also removes the explanation of its call format. `changes` counts `tools_preamble`.
    Raises JsonFault if the list cannot be read.
    """
    match = _LIST.search(system)
    if match is None:
        return system, None
    _, end = scan(system, match.end())
    definitions = value(system[match.end() : end], changes)
    changes["tools_preamble"] += 1
    rest = _FORMAT.sub("", system[end:].removeprefix("."))
    words = "\n".join(text.strip() for text in (system[: match.start()], rest) if text.strip())
    return words, tuple(one_or_many(definitions))


def _toolace_parts(text: str, names: Iterable[str]) -> list[Part]:
    """Returns the calls in a turn, or its text.

    A text in brackets that cannot be read as calls is a broken call if it begins with one of the
    defined `names`, otherwise prose.
    """
    body = text.strip()
    if not body.startswith("["):
        return [Text(text)] if text else []
    longest_first = sorted(names, key=len, reverse=True)
    found: list[Part] = []
    at, mark = 1, ","
    try:
        while mark == ",":
            call, at = python_call(body, at, longest_first)
            found.append(call)
            mark, at = _mark(body, at)
    except JsonFault:
        mark = ""
    if mark == "]" and at == len(body):
        return found
    begin = past_space(body, 1)
    broken = any(body.startswith(f"{name}(", begin) for name in longest_first)
    return [Unparsed(text, "bad_call") if broken else Text(text)]


def python_call(body: str, at: int, names: list[str]) -> tuple[ToolCall, int]:
    """Returns the call at `at`, and the position after it. Raises JsonFault.

    This is not Python: names contain spaces, dots, slashes and hyphens, and values may be words
    without quotes.
    """
    name, at = _called_name(body, at, names)
    arguments: dict[str, Json] = {}
    if empty := _EMPTY.match(body, at):
        return ToolCall(name, arguments), empty.end()
    mark = ","
    at += 1
    while mark == ",":
        key = _KEY.match(body, at)
        if key is None:
            raise JsonFault("bad_json", f"no name of an argument at character {at}")
        arguments[key["key"]], at = _value(body, key.end())
        mark, at = _mark(body, at, keep_space=True)
    if mark != ")":
        raise JsonFault("bad_json", f"arguments that do not end at character {at}")
    return ToolCall(name, arguments), at


def _called_name(body: str, at: int, names: list[str]) -> tuple[str, int]:
    at = past_space(body, at)
    for name in names:
        if body.startswith(f"{name}(", at):
            return name, at + len(name)
    match = _NAME.match(body, at)
    if match is None:
        raise JsonFault("bad_json", f"no name of a function at character {at}")
    return match[0].strip(), match.end()


def _value(body: str, at: int) -> tuple[Json, int]:
    """Returns a literal, or the unquoted text (such as a date) up to the next mark."""
    fault = JsonFault("bad_json", f"no value at character {at}")
    try:
        found, end = scan(body, at)
    except JsonFault as broken:
        fault = broken
    else:
        if _NEXT.match(body, end):
            return found, end
    word = _WORD.match(body, at)
    if word is None or fault.code != "bad_json":
        raise fault
    return word[0].strip(), word.end()


def _mark(body: str, at: int, *, keep_space: bool = False) -> tuple[str, int]:
    match = _NEXT.match(body, at)
    if match is None:
        raise JsonFault("bad_json", f"neither a comma nor a bracket at character {at}")
    return match["mark"], match.end("mark") if keep_space else match.end()


# -- Dolci (Olmo): calls as Python text in `function_calls`, results of role environment -----------

_DOLCI_OWN = frozenset({"functions", "function_calls"})
_DOLCI_FORMAT = re.compile(
    r"You are provided with function signatures within <functions></functions> XML tags\.\s*"
    r"|Output any function calls within <function_calls></function_calls> XML tags\.\s*"
)
"""Sentences that describe where the training template of Olmo puts definitions and calls."""


def _is_dolci(row: dict[str, Json]) -> bool:
    items = as_list(json_in_text(row.get("messages")))[:5]
    return any(as_dict(item).keys() >= _DOLCI_OWN for item in items)


def _dolci(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    items = as_dicts(json_in_text(row.get("messages")))
    if not items:
        return Problem("no_messages", where, "no list of messages")
    problems: list[Problem] = []
    listed = next((text for item in items if (text := item.get("functions"))), None)
    tools: Tools = None
    try:
        tools = tuple(as_list(column(listed, changes)))
    except JsonFault as fault:
        problems.append(bad_tools(where, fault, "functions: "))
    defined = {as_str(tool, "function", "name") or as_str(tool, "name") for tool in tools or ()}
    messages: list[Message] = []
    for item in items:
        read = [*_dolci_messages(item, messages[-1:], defined - {""}, changes)]
        messages += noted(read, item, message_keys("dolci")) if read else ()
    name = row_name(where, row.get("id"), names)
    return published(name, where, messages, tools, changes, problems)


def _dolci_messages(
    item: dict[str, Json], before: list[Message], names: set[str], changes: Counter[str]
) -> Iterator[Message]:
    role, body = as_str(item.get("role")), item.get("content")
    if role == "environment":  # one result in each line, if there are as many as calls
        count = len(calls(before[0])) if before else 0
        lines = body.splitlines() if isinstance(body, str) and count > 1 else []
        for result in lines if len(lines) == count else [body]:
            yield Message("tool", (ToolResult(text_or_data(result)),))
        return
    plain = {key: inner for key, inner in item.items() if key not in _DOLCI_OWN}
    message = chat_message(plain)
    parts: list[Part] = []
    for part in message.parts:
        if role == "system" and isinstance(part, Text) and _DOLCI_FORMAT.search(part.text):
            changes["tools_preamble"] += 1
            part = Text(_DOLCI_FORMAT.sub("", part.text).strip())  # noqa: PLW2901 - without them
        parts.append(part)
    called = item.get("function_calls")
    if isinstance(called, str) and called.strip():
        try:
            parts += _calls_in_lines(called, names)
        except JsonFault:
            parts.append(Unparsed(called, "bad_call"))
    yield Message(message.role, tuple(parts))


def _calls_in_lines(text: str, names: Iterable[str]) -> Iterator[ToolCall]:
    """Yields the calls in a text, `f(a=1)` in each line. Raises JsonFault for any other text.

    Only the defined `names` may contain white space.
    """
    longest_first = sorted(names, key=len, reverse=True)
    at = past_space(text, 0)
    while at < len(text):
        call, end = python_call(text, at, longest_first)
        if call.name not in longest_first and len(call.name.split()) > 1:
            raise JsonFault("bad_json", f"no name of a function at character {at}")
        yield call
        at = past_space(text, end)


# -- Glaive v2: a whole chat as one text -----------------------------------------------------------

_ROLES = {"USER": "user", "ASSISTANT": "assistant", "FUNCTION RESPONSE": "tool"}
_END = "<|endoftext|>"
_NAMES = "USER|ASSISTANT|FUNCTION RESPONSE"
# Segments also contain paragraphs that begin with such a name.
_SEGMENTS = tuple(
    re.compile(rf"(?:\A\s*|(?<={gap})|{re.escape(_END)}\s*)({_NAMES}): ?")
    for gap in (r"\n\n\n", r"\n", r" ")
)
_GAP = re.compile(rf"\n\n\n(?:{_NAMES}):")
_SHORT = re.compile(rf"(\n\n|{re.escape(_END)}\s*)A: ")
"""The name of the assistant in some rows, after an empty line."""


def _is_glaive(row: dict[str, Json]) -> bool:
    chat = as_str(row.get("chat"))
    return isinstance(row.get("system"), str) and _SEGMENTS[1].match(chat) is not None


def _glaive(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    problems: tuple[Problem, ...] = ()
    messages = list(_glaive_messages(as_str(row.get("chat")), changes))
    if not messages:
        return Problem("unknown_shape", where, "no chat of USER: and ASSISTANT: segments")
    system = as_str(row.get("system")).strip().removeprefix("SYSTEM:").strip()
    tools: Tools = None
    try:
        system, tools = take_listed_tools(system, changes)
    except JsonFault as fault:
        problems = (bad_tools(where, fault),)
    if system:
        messages.insert(0, Message("system", (Text(system),)))
    name = row_name(where, row.get("id"), names)
    return published(name, where, messages, tools, changes, problems)


def _glaive_messages(chat: str, changes: Counter[str]) -> Iterator[Message]:
    """Yields the segments in order; consecutive segments of one role stay separate."""
    if "ASSISTANT:" not in chat:
        chat = _SHORT.sub(r"\1ASSISTANT: ", chat)
    strict, lenient, flat = _SEGMENTS  # flat: somebody replaced the line ends
    one_line = lenient if "\n" in chat else flat
    marks = list((strict if _GAP.search(chat) else one_line).finditer(chat))
    if not marks:
        return
    if before := chat[: marks[0].start()].strip():
        yield Message("none", (Text(before),))  # text without a role
    ends = [*(mark.start() for mark in marks[1:]), len(chat)]
    for mark, end in zip(marks, ends, strict=True):
        role, text = _ROLES[mark[1]], chat[mark.end() : end].strip()
        parts: list[Part] = [ToolResult((Text(text),)) if role == "tool" else Text(text)]
        if role == "assistant":
            parts = functioncall_parts(text.removesuffix(_END).rstrip(), changes)
        yield Message(role, tuple(parts))


# -- xLAM: query, tools and answers; Hammer's rows in the same shape, and its prompt of sections ---

_CUE = "Generate API Request:"
"""The text by which API-Bank's program requests a call at the end of the dialogue."""
_FENCE = "```"
_TOOLS, _QUERY, _TASK = "AVAILABLE TOOLS", "QUERY", "TASK INSTRUCTION"


def _is_xlam(row: dict[str, Json]) -> bool:
    return {"query", "tools", "answers"} <= row.keys() or (
        "output" in row and f"[BEGIN OF {_TOOLS}]" in as_str(row.get("instruction"))
    )


def _xlam(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    if "query" in row:
        messages = _dialogue(row["query"], row.get("answers"), changes)
        if messages[-1].parts and (thoughts := thoughts_of_keys(row)):
            last = messages.pop()
            messages.append(replace(last, parts=(*thoughts, *last.parts)))
        tools: Json = row.get("tools")
    else:
        prompt = as_str(row.get("instruction"))
        tools, task, query = (_section(prompt, name) for name in (_TOOLS, _TASK, _QUERY))
        if tools is None or query is None:
            return Problem("unknown_shape", where, "neither query nor a prompt of sections")
        changes["tools_preamble"] += 1
        asked = "\n".join(text for text in (query, as_str(row.get("input"))) if text)
        output = row.get("output")
        answer = _fenced(output, changes) if isinstance(output, str) else _answers(output, changes)
        messages = [Message("system", (Text(task),))] if task else []
        messages += [Message("user", (Text(asked),)), Message("assistant", tuple(answer))]
    problems: tuple[Problem, ...] = ()
    defined: Tools = None
    try:
        if isinstance(tools, str):
            tools = value(tools, changes) if tools.strip() else []
        defined = None if tools is None else tuple(one_or_many(tools))
    except JsonFault as fault:
        problems = (bad_tools(where, fault),)
    if not messages:
        return Problem("no_messages", where, "neither query nor answers can be read")
    name = row_name(where, row.get("id"), names)
    return published(name, where, messages, defined, changes, problems)


def _section(prompt: str, name: str) -> str | None:
    _, begin, rest = prompt.partition(f"[BEGIN OF {name}]")
    body, end, _ = rest.partition(f"[END OF {name}]")
    return body.strip() if begin and end else None


def _fenced(text: str, changes: Counter[str]) -> list[Part]:
    """Returns the calls of a text that is a list of calls, with or without fences, or the text."""
    body = text.strip()
    if body.startswith(_FENCE) and body.endswith(_FENCE):
        body = body.strip("`").removeprefix("json").strip()
    if not body.startswith("["):
        return [Text(text)] if text else []
    return _answers(body, changes)


def _answers(answers: Json, changes: Counter[str]) -> list[Part]:
    """Returns the calls in an answers column: a list, or its text; [] if nothing is called."""
    if isinstance(answers, str):
        try:
            answers = value(answers, changes)
        except JsonFault:
            return [Unparsed(as_str(answers), "bad_call")]
    found: list[Part] = []
    for item in one_or_many(answers) if answers is not None else ():
        call = as_dict(item)
        if "tool" in call and "name" not in call:  # Seal-Tools
            call = {"name": call["tool"], "arguments": call.get("parameters")}
        found.append(call_of(call) or Unparsed(dumps(item), "bad_call"))
    return found


def _dialogue(query: Json, answers: Json, changes: Counter[str]) -> list[Message]:
    """Returns the messages of the query, which is a text or a dialogue, and of its answers.

    API-Bank's dialogues contain earlier calls as text, and extend one another: the same call after
    the same text is one call.
    """
    made = _answers(answers, changes)
    if not isinstance(query, list):
        unread = unknown_part(f"query {json_type(query)}")
        asked = Text(query) if isinstance(query, str) else unread
        return [Message("user", (asked,)), Message("assistant", tuple(made))]
    messages: list[Message] = []
    so_far = hashlib.blake2b(digest_size=16)
    for item in query:
        turn = as_dict(item)
        role, text = as_str(turn.get("role")), as_str(turn.get("content"))
        words: tuple[Content, ...] = (Text(text),)
        if not isinstance(turn.get("content"), str):
            words = (unknown_part(f"content {json_type(turn.get('content'))}"),)
        if text.endswith(_CUE):
            text = text.removesuffix(_CUE).removesuffix("\n")
            words = (*((Text(text),) if text else ()), Text(_CUE, harness=True))
        if role == "tool":
            messages.append(Message("tool", (ToolResult(words),)))
        elif role == "assistant":
            messages.append(_keyed(_fenced(text, changes), so_far.hexdigest()))
        else:
            messages.append(Message("assistant" if role == "agent" else role, words))
        so_far.update(dumps([role, text]).encode("utf-8", "surrogatepass"))
    return [*messages, _keyed(made, so_far.hexdigest())]


def _keyed(parts: list[Part], so_far: str) -> Message:
    return with_keys(Message("assistant", tuple(parts)), lambda at, _: f"{so_far}:{at}")


READERS = (
    of_rows(
        "toolace",
        claims(
            _is_toolace, "a system text that lists functions in JSON format, with conversations"
        ),
        _toolace,
    ),
    of_rows(
        "dolci",
        claims(_is_dolci, "messages with functions and function_calls"),
        _dolci,
    ),
    of_rows(
        "glaive",
        claims(_is_glaive, "rows of system and chat with USER: and ASSISTANT: segments"),
        _glaive,
    ),
    of_rows(
        "xlam",
        claims(_is_xlam, "rows of query, tools and answers, or with a section of tools"),
        _xlam,
    ),
)
