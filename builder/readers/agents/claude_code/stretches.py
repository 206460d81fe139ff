"""Converts the branches of a session to conversations with the context of each answer.

A stretch is a sequence of turns in which each request extends the previous request and its answer.
A request that removes or changes earlier messages, or has another system prompt or other tools,
begins a new stretch: a conversation of its own, in which the earlier turns are repeats. Added tools
and a changed date in the system prompt do not begin a stretch: the last state is used for all its
turns (`tools_added_later`, `system_date_moved`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from builder.conversation import (
    LEVELS,
    REPEAT,
    Context,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    lowest,
)
from builder.readers.agents.claude_code.lines import (
    LEAVES_PLAN_MODE,
    SessionLine,
    SessionTurn,
    mark_result,
    split_user_text,
)
from builder.readers.agents.claude_code.requests import (
    Assembly,
    ProcessEnd,
    Requests,
    SentMessage,
    Shape,
    Snapshots,
    adds_only,
)
from builder.readers.api.anthropic.blocks import read_parts
from builder.readers.toolkit.chat_messages import results_apart
from builder.readers.toolkit.deferred import is_deferred, loaded_names, without_deferred
from builder.readers.toolkit.narrow import as_str
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, unknown_in

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{4}")

_KEYS = MESSAGE_KEYS | {
    "stop_sequence", "stop_details", "container", "context_management", "diagnostics",
}  # fmt: skip
"""Keys of answers that are known."""

_ALTERED = "digest"
"""The code of `Context.missing` for a request that does not match the log's own digests."""


@dataclass
class RequestRun:
    """Messages up to the last turn, the targets among the turns by key, and their contexts."""

    messages: list[SentMessage] = field(default_factory=list)
    targets: list[SessionTurn] = field(default_factory=list)
    contexts: dict[str, Context] = field(default_factory=dict)
    shape: Shape | None = None
    changes: Counter[str] = field(default_factory=Counter)

    @property
    def context(self) -> Context:
        """The context of all targets together: the lowest level, every missing code."""
        return lowest(self.contexts.values()) or Context(LEVELS[0])


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The context of a turn: messages (None: as assembled from the lines), shape, level."""

    messages: tuple[SentMessage, ...] | None
    shape: Shape | None
    context: Context


def find_stretches(
    lines: Sequence[SessionLine],
    assembly: Assembly,
    requests: Requests,
    *,
    renders: bool,
    repeated: Collection[str],
    ends: Sequence[ProcessEnd],
) -> list[RequestRun]:
    """Returns the stretches of a branch, in order; each has at least one target.

    `ends`: the lines that a process of the program wrote at its end.
    `repeated`: keys of turns that are not targets of this branch: they are targets of another
    branch, or a compaction kept them.
    """
    turns = [
        sent.turn
        for sent in assembly.messages
        if sent.turn is not None and sent.turn.key not in repeated
    ]
    snapshots = Snapshots(lines, ends)
    views = [
        _view(turn, following, requests, snapshots, renders)
        for turn, following in zip_longest(turns, turns[1:])
    ]
    views = _with_missing(turns, _with_later_requests(turns, views), assembly)
    runs: list[RequestRun] = []
    at = 0  # messages of the assembly that are in the stretch
    for turn, view in zip(turns, views, strict=True):
        place = assembly.places[turn.key]
        current = runs[-1] if runs else None
        between = assembly.messages[at:place]
        at = place + 1
        shape = _joined_shape(current, view.shape)
        if current is None or shape is None or not _continues(current.messages, view):
            current = RequestRun([*current.messages] if current else [], shape=view.shape)
            runs.append(current)
        else:
            current.shape = shape
        if view.messages is None:
            current.messages += between
        else:
            current.messages = [*view.messages]
        current.messages.append(assembly.messages[place])
        current.targets.append(turn)
        current.contexts[turn.key] = view.context
    if runs:
        runs[-1].messages += assembly.messages[at:]
    for run in runs:
        _leave_deferred(run)
    return runs


def _leave_deferred(run: RequestRun) -> None:
    """Leaves out the tools that the requests of a stretch defer and that none of them loads.

    The definition of a loaded tool was sent after the prompt, so its turns are at most `rendered`.
    """
    shape = run.shape
    marked = sum(map(is_deferred, shape.tools)) if shape is not None else 0
    if shape is None or not marked:
        return
    named: set[str] = set()
    for sent in run.messages:
        if sent.turn is None:
            named.update(loaded_names(sent.value.get("content")))
        else:
            named.update(part.name for part in sent.turn.parts if isinstance(part, ToolCall))
    offered, deferred = without_deferred(shape.tools, named)
    run.shape = replace(shape, tools=offered)
    run.changes["deferred_tools"] += len(deferred)
    if len(deferred) < marked:
        _lower_proven(run)


def _lower_proven(run: RequestRun) -> None:
    """Makes the turns of a stretch, which is shown with another prompt, at most `rendered`."""
    for key, context in run.contexts.items():
        if context.level == "proven":
            run.contexts[key] = Context("rendered")


def _continues(messages: Sequence[SentMessage], view: RequestContext) -> bool:
    """Returns whether a request begins with the messages; one assembled from lines always does."""
    return view.messages is None or adds_only(messages, view.messages)


def _view(
    turn: SessionTurn,
    following: SessionTurn | None,
    requests: Requests,
    snapshots: Snapshots,
    renders: bool,
) -> RequestContext:
    """Returns the view of the request that a turn answered, as far as the log shows it."""
    references = [as_str(line.value.get("requestRef")) for line in turn.lines]
    reference = next((item for item in references if item), "")
    rebuilt = requests.rebuild(reference) if reference else None
    if rebuilt is not None:
        missing = set() if rebuilt.proven else {_ALTERED}
        missing |= {"history"} if rebuilt.trimmed else set()
        context = Context.lacking(missing, "proven")
        return RequestContext(rebuilt.messages, rebuilt.shape, context)
    exact = requests.exact_shape(reference)
    shape = exact or snapshots.before(following)
    missing = {"system", "tools"} - (shape.known if shape is not None else frozenset())
    if exact is None and not snapshots.has_tools_of(turn):
        missing.add("tools")
    if not renders:
        missing.add("reminders")
    if reference in requests:
        missing.add(_ALTERED)
    return RequestContext(None, shape, Context.lacking(missing, "rendered"))


def _with_missing(
    turns: Sequence[SessionTurn], views: list[RequestContext], assembly: Assembly
) -> list[RequestContext]:
    """Returns the views; those assembled from the lines get the codes of what lines lack.

    Turns after an omission lack `history`, and turns after a notification of a background task lack
    the note around it (`reminders`). Another model gets attachments in another form (`history`);
    the call that leaves plan mode is sent back without the plan (`history`).
    """
    completed = []
    trimmed = False
    for turn, view in zip(turns, views, strict=True):
        if view.messages is not None:
            completed.append(view)
            continue
        place, missing = assembly.places[turn.key], set(view.context.missing)
        if assembly.gap is not None and place >= assembly.gap:
            missing.add("history")
        if assembly.unknown is not None and place >= assembly.unknown:
            missing.add("unknown_part")
        if assembly.notified is not None and place > assembly.notified:
            missing.add("reminders")
        if assembly.unrendered is not None and place > assembly.unrendered:
            missing.update(("media", "reminders"))
        if trimmed:
            missing.add("history")
        trimmed = trimmed or any(map(_loses_plan, turn.blocks))
        if not missing and turn.lines[0].model != turns[0].lines[0].model:
            missing.add("history")
        completed.append(replace(view, context=Context.lacking(missing, view.context.level)))
    return completed


def _loses_plan(block: dict[str, Json]) -> bool:
    return block.get("name") == LEAVES_PLAN_MODE and bool(block.get("input"))


def _with_later_requests(
    turns: Sequence[SessionTurn], views: list[RequestContext]
) -> list[RequestContext]:
    """Returns the views; a turn without a request uses a later request that contains the turn.

    The log of a forked or moved session has only the requests of its later turns.
    """
    completed = list(views)
    later: RequestContext | None = None
    version: Json = None
    for at in reversed(range(len(turns))):
        view, turn = completed[at], turns[at]
        if view.messages is not None:
            later, version = view, turn.lines[0].value.get("version")
        elif (
            later is not None
            and later.messages is not None
            and _ALTERED not in (*view.context.missing, *later.context.missing)
        ):
            same = turn.lines[0].value.get("version") == version
            keys = (sent.turn and sent.turn.key for sent in later.messages)
            place = next((n for n, key in enumerate(keys) if key == turn.key), None)
            if same and place is not None:
                completed[at] = RequestContext(
                    later.messages[:place], later.shape, Context("rendered")
                )
    return completed


def _joined_shape(current: RequestRun | None, new: Shape | None) -> Shape | None:
    """Returns the shape of the stretch with the next turn; None if that begins a new stretch.

    Records in the stretch what it changes for the earlier turns.
    """
    old = current.shape if current is not None else None
    if current is None or old is None or new is None or old == new:
        return new or old or Shape(known=frozenset())
    kept = {_tool_name(tool): tool for tool in new.tools}
    if any(kept.get(_tool_name(tool)) != tool for tool in old.tools):
        return None
    moved = old.system != new.system
    if moved and _undated(old.system) != _undated(new.system):
        return None
    current.changes["tools_added_later"] += len(new.tools) > len(old.tools)
    current.changes["system_date_moved"] += moved
    _lower_proven(current)
    return new


def _tool_name(tool: Json) -> str:
    return as_str(tool, "name")


def _undated(texts: Sequence[str]) -> list[str]:
    return [_DATE.sub("", text) for text in texts]


def messages_of(
    stretch: RequestRun,
    *,
    untrained: Mapping[str, str],
    by_program: Collection[str],
    denials: Mapping[str, str],
) -> Iterator[Message]:
    """Yields a stretch as messages, its system prompt first.

    `untrained` contains the codes of turns that are not targets, by key; other turns that are not
    targets of the stretch are repeats. `by_program`: texts of user lines that the program wrote.
    `denials`: the logged kinds of refusals, by call id.
    """
    if stretch.shape is not None and stretch.shape.system:
        yield Message("system", tuple(map(Text, stretch.shape.system)))
    targets = {turn.key for turn in stretch.targets}
    common = stretch.context
    for sent in stretch.messages:
        turn = sent.turn
        if turn is not None:
            code = untrained.get(turn.key) or (None if turn.key in targets else REPEAT)
            context = stretch.contexts.get(turn.key)
            context = None if context == common else context
            name = turn.lines[0].response
            model = turn.lines[-1].model
            logged = (line.value.get("message") for line in turn.lines)
            unknown = tuple(dict.fromkeys(key for one in logged for key in unknown_in(one, _KEYS)))
            yield Message("assistant", turn.parts, name, code, context, model, unknown=unknown)
            continue
        role = as_str(sent.value.get("role"))
        parts = read_parts(sent.value.get("content"))
        if role == "assistant":
            yield Message(role, tuple(parts), untrained=sent.code, unknown=unknown_in(sent.value))
            continue
        results, rest = results_apart(parts)
        unknown = unknown_in(sent.value)
        if results:
            marked = (mark_result(part, denials.get(part.call_id or "", "")) for part in results)
            yield Message("tool", tuple(marked), unknown=unknown)
        if rest:
            marked_rest = tuple(_marked(rest, role, by_program))
            yield Message(role, marked_rest, unknown=() if results else unknown)


def _marked(parts: Sequence[Part], role: str, by_program: Collection[str]) -> Iterator[Part]:
    for part in parts:
        if not isinstance(part, Text):
            yield part
        elif role == "system":
            yield replace(part, harness=True)
        else:
            yield from split_user_text(part.text, by_program)
