"""Reads texts of Cline and Roo: tools written as tags, user text mixed with harness text.

Source: docs/formats/cline.md, "Tags". They are not XML, because values contain raw `<` and `&`: the
scanner looks only for known names and, in values that contain file text, for the last closing tag.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from builder.conversation import Json, Part, Reasoning, Text, ToolCall, Unparsed

TOOLS: dict[str, tuple[str, ...]] = {
    "access_mcp_resource": ("server_name", "uri"),
    "act_mode_respond": ("response",),
    "apply_diff": ("path", "diff", "start_line", "args"),
    "apply_patch": ("input",),
    "ask_followup_question": ("question", "options", "follow_up"),
    "attempt_completion": ("result", "command"),
    "browser_action": ("action", "url", "coordinate", "text", "size"),
    "codebase_search": ("query", "path"),
    "condense": ("context", "message"),
    "delete_file": ("path",),
    "edit_file": ("target_file", "instructions", "code_edit"),
    "execute_command": ("command", "requires_approval", "cwd", "timeout"),
    "fetch_instructions": ("task",),
    "generate_image": ("prompt", "path", "image"),
    "insert_content": ("path", "line", "content"),
    "list_code_definition_names": ("path",),
    "list_files": ("path", "recursive"),
    "load_mcp_documentation": (),
    "new_rule": ("path", "content"),
    "new_task": ("context", "mode", "message", "todos"),
    "plan_mode_respond": ("response", "options", "needs_more_exploration"),
    "plan_mode_response": ("response", "options"),
    "read_file": ("path", "start_line", "end_line", "args"),
    "replace_in_file": ("path", "diff"),
    "report_bug": (
        "title", "what_happened", "steps_to_reproduce", "api_request_output", "additional_context",
    ),
    "run_slash_command": ("command", "args"),
    "search_and_replace": (
        "path", "search", "replace", "start_line", "end_line", "use_regex", "ignore_case",
        "operations",
    ),
    "search_files": ("path", "regex", "file_pattern"),
    "switch_mode": ("mode_slug", "reason"),
    "update_todo_list": ("todos",),
    "use_mcp_tool": ("server_name", "tool_name", "arguments"),
    "web_fetch": ("url", "prompt"),
    "web_search": ("query", "allowed_domains", "blocked_domains"),
    "write_to_file": ("path", "content", "line_count"),
}  # fmt: skip
"""The tools of the tag dialect and their parameters (Cline, Roo, Kilo; all take task_progress)."""

_OPEN = re.compile("<(" + "|".join(sorted(TOOLS)) + ")>")
_FILE_TEXT = frozenset({"content", "diff", "code_edit", "arguments", "input"})
"""Parameters whose values may contain anything, closing tags included."""
_THINKING = re.compile(r"<thinking>(.*?)</thinking>", re.DOTALL)
_WRAPPED = re.compile(
    r"<(?P<tag>task|feedback|answer|user_message|user_input)(?: [^<>]*)?>(?P<words>.*?)</(?P=tag)>"
    r"|(?P<program><(?P<block>environment_details|SYSTEM_NOTICE|explicit_instructions|file_content"
    r"|folder_content|url_content|custom_instructions)(?: [^<>]*)?>.*?</(?P=block)>)",
    re.DOTALL,
)
_PROGRAM = re.compile(
    r"\s*(?:\[(?:TASK RESUMPTION|ERROR|Sliding window truncation)|# (?:task_progress|TODO LIST))\b"
)
_INTERRUPTED = re.compile(r"\s*\[Response interrupted by [^\[\]]*\]\s*\Z")
RESULT = re.compile(r"\[(?P<name>\w+)(?:[^\n]*?)\] Result:[ \t]*\n?")
"""The head of a tool's result in the tag dialect: `[read_file for 'x'] Result:`."""


NOT_EXECUTED = re.compile(
    r"(?:Skipping tool|Tool) \[(?P<name>\w+)[^\]]*\] "
    r"(?:was (?:interrupted and )?not executed|due to user rejecting)[^\n]*"
)
"""The text that the program sends as the result of a call that it did not run."""


def without_interruption(text: str) -> str:
    """Returns an answer's text without the program's note that it was interrupted."""
    return _INTERRUPTED.sub("", text)


def is_by_program(text: str) -> bool:
    """Returns whether a user text begins like a reminder or notice of the program."""
    return _PROGRAM.match(text) is not None


def assistant_parts(text: str) -> list[Part]:
    """Splits an assistant's text into text, `<thinking>` and tools, in order.

    A tool whose tag is never closed is Unparsed with the code `bad_call`.
    """
    parts: list[Part] = []
    at = 0
    while match := _OPEN.search(text, at):
        parts += _words(text[at : match.start()])
        name = match[1]
        close = f"</{name}>"
        arguments, at = _arguments(text, match.end(), name)
        end = text.find(close, at)
        if end < 0:
            parts.append(Unparsed(text[match.start() :], "bad_call"))
            return parts
        parts.append(ToolCall(name, arguments))
        at = end + len(close)
    return parts + _words(text[at:])


def _words(text: str) -> list[Part]:
    pieces = map(str.strip, _THINKING.split(text))  # text and thoughts alternate
    return [
        Reasoning(piece) if number % 2 else Text(piece)
        for number, piece in enumerate(pieces)
        if piece
    ]


def _arguments(text: str, at: int, name: str) -> tuple[dict[str, Json], int]:
    """Returns the parameters from `at` on, and the end of the last one."""
    names = "|".join((*TOOLS[name], "task_progress"))
    opening = re.compile(rf"\s*<({names})>")
    arguments: dict[str, Json] = {}
    while match := opening.match(text, at):
        key = match[1]
        close = f"</{key}>"
        if key in _FILE_TEXT:
            # The last closing tag before the first end of the tool, at which the program stops.
            limit = text.find(f"</{name}>", match.end())
            end = text.rfind(close, match.end(), limit if limit >= 0 else len(text))
        else:
            end = text.find(close, match.end())
        if end < 0:
            break
        value = text[match.end() : end]
        arguments[key] = (
            value.removeprefix("\n").removesuffix("\n") if key in _FILE_TEXT else value.strip()
        )
        at = end + len(close)
    return arguments, at


def user_parts(text: str, changes: Counter[str]) -> Iterator[Text]:
    """Separates the user's text from the program's in a user message.

    Text in `<task>`, `<feedback>`, `<answer>`, `<user_message>` and `<user_input>` is the user's,
    without the tags (`wrapper_removed`). The text around these tags is the program's, and so are
    blocks of context and notices. A text without these tags is the user's.
    """
    matches = list(_WRAPPED.finditer(text))
    own = is_by_program(text) or any(match["tag"] for match in matches)
    at = 0
    for match in matches:
        yield from _around(text[at : match.start()], own)
        if match["tag"]:
            changes["wrapper_removed"] += 1
            if words := match["words"].strip():
                yield Text(words)
        else:
            yield Text(match[0], harness=True)
        at = match.end()
    yield from _around(text[at:], own)


def _around(text: str, own: bool) -> Iterator[Text]:
    if text.strip():
        yield Text(text.strip() if own else text, harness=own)
