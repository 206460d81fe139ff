"""An independent renderer: the text that the Qwen3 chat template gives, without the template.

Written from the format specification and the template's published rules. It exists to disagree:
Hugging Face renders every sample, and a difference is a finding (`spec`). It also knows what the
template's text alone cannot tell, namely which control tokens are structure, and what is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builder.conversation import Json
from builder.jsonio import dumps
from builder.qwen3.constants import (
    EMPTY_THOUGHT,
    IM_END,
    IM_START,
    THINK,
    THINK_END,
    TOOL_CALL,
    TOOL_CALL_END,
    TOOL_RESPONSE,
    TOOL_RESPONSE_END,
    TOOLS_END,
    TOOLS_START,
)
from builder.qwen3.markup import (
    RESPONSE_BREAK,
    call_blocks,
    last_query,
    read_responses,
)

Control = tuple[int, str]
"""A control token: (offset in code points, token)."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A rendered record; offsets are code points of `text`.

    spans    for each assistant turn [start, end): from just after the generation prompt of the
             non-thinking mode, so that an empty think block is outside, to the end of `<|im_end|>`
    control  every control token that the structure puts there, in order; none from text
    """

    text: str
    spans: tuple[tuple[int, int], ...]
    control: tuple[Control, ...]


def render(
    messages: Sequence[tuple[str, str]], tools: Sequence[Json] = (), *, thinks: bool = True
) -> Rendering:
    """Render messages of roles system, user and assistant, given as (role, content).

    `thinks=False` is the rule of the templates that know no thoughts (instruct-2507): contents
    stand as they are. Neither form changes anything but assistant contents.
    """
    query = last_query(messages) if thinks else len(messages)
    last = len(messages) - 1
    pieces: list[str] = []
    control: list[Control] = []
    spans: list[tuple[int, int]] = []
    at = 0
    if tools:
        system = messages[0][1] + "\n\n" if messages and messages[0][0] == "system" else ""
        head = f"{IM_START}system\n{system}{TOOLS_START}"
        listed = "".join(["\n" + dumps(tool) for tool in tools])
        end = len(head) + len(listed)
        control.append((0, IM_START))
        control += ((end + offset, token) for offset, token in _TOOLS_END_CONTROL)
        at = end + len(TOOLS_END) + len(IM_END) + 1
        pieces += (head, listed, TOOLS_END, IM_END, "\n")
    for index, (role, content) in enumerate(messages):
        if tools and index == 0 and role == "system":
            continue
        control.append((at, IM_START))
        header = f"{IM_START}{role}\n"
        at += len(header)
        pieces.append(header)
        body = content
        if role == "assistant":
            start = at
            thought = ""
            if thinks:
                thought, body = _thought(content, index > query, index == last)
            if thought:
                control += ((at, THINK), (at + len(thought) - len(THINK_END) - 2, THINK_END))
                at += len(thought)
                pieces.append(thought)
                start = at if thought == EMPTY_THOUGHT else start
            for block in call_blocks(body):
                control.append((at + block.start, TOOL_CALL))
                control.append((at + block.end - len(TOOL_CALL_END), TOOL_CALL_END))
            spans.append((start, at + len(body) + len(IM_END)))
        elif role == "user" and content.startswith(TOOL_RESPONSE):
            _mark_responses(content, at, control)
        at += len(body)
        control.append((at, IM_END))
        at += len(IM_END) + 1
        pieces += (body, IM_END, "\n")
    return Rendering("".join(pieces), tuple(spans), tuple(control))


def _thought(content: str, after_query: bool, is_last: bool) -> tuple[str, str]:
    """(think block, body) as the template writes an assistant content; the block may be ""."""
    reasoning, body = "", content
    if THINK_END in content:
        before = content[: content.index(THINK_END)].rstrip("\n")
        reasoning = before.rpartition(THINK)[2].strip("\n")
        body = content.rpartition(THINK_END)[2].lstrip("\n")
    if after_query and (is_last or reasoning):
        return f"{THINK}\n{reasoning}\n{THINK_END}\n\n", body.lstrip("\n")
    return "", body


def _mark_responses(content: str, at: int, control: list[Control]) -> None:
    responses = read_responses(content)
    if responses is None:
        return
    for response in responses:
        control.append((at, TOOL_RESPONSE))
        at += len(TOOL_RESPONSE) + 1 + len(response) + 1
        control.append((at, TOOL_RESPONSE_END))
        at += len(TOOL_RESPONSE_END) + 1


def _tools_end_control() -> tuple[Control, ...]:
    text = TOOLS_END + IM_END
    found = [
        (offset, token)
        for token in (TOOL_CALL, TOOL_CALL_END, IM_END)
        for offset in range(len(text))
        if text.startswith(token, offset)
    ]
    return tuple(sorted(found))


_TOOLS_END_CONTROL = _tools_end_control()
