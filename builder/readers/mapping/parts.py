"""Proposes the section `message` of a mapping: roles, texts, calls and results of messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from builder.conversation import Json
from builder.readers.mapping.calls import (
    CallShape,
    find_calls,
    find_tools,
    makes_call,
    perhaps_roles,
)
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.names import is_usual, meaning
from builder.readers.mapping.proposal import Proposal, prose_paths, usual_path
from builder.readers.mapping.results import propose_results
from builder.readers.mapping.roles import named, role_path, value_of, whole_role, with_phase
from builder.readers.mapping.spec import ROLES, value_at
from builder.readers.mapping.structure import (
    answers_of_calls,
    assign_speakers,
    find_fragments,
    following,
    has_text,
    plain,
)
from builder.readers.toolkit.narrow import as_list
from builder.readers.toolkit.thoughts import THOUGHT_KEYS

_THOUGHTS = THOUGHT_KEYS | {"why", "rationale", "reason", "scratchpad", "plan"}


def propose(
    conversations: Sequence[Sequence[Json]], tools: Collection[str], apart: Sequence[str] = ()
) -> Proposal:
    """Returns the proposal for the messages of conversations; `tools` are names of defined ones.

    `apart` are paths of what the messages of a conversation share, or are ordered by.
    """
    found = Proposal(taken=[*apart], apart=apart, conversations=conversations)
    messages = [one for conversation in conversations for one in conversation]
    role = role_path(messages) or role_path(messages, "structure")
    if role is not None:
        role = with_phase(messages, whole_role(messages, role), tools)
    own = [one.rpartition(" && ")[2] for one in (role.split(" || ") if role is not None else ())]
    own += filter(None, [find_tools(messages)[0]])
    found.taken += own
    found.section["role"] = role if role is not None else "'assistant'"
    by_role = _roles(conversations, role, tools, found)
    answers, calling = by_role.get("assistant", []), by_role.get("call", [])
    keys = dict.fromkeys(
        key
        for one in [*answers, *calling]
        if isinstance(one, dict)
        for key, value in one.items()
        if value not in (None, "", [])
    )
    thoughts = [key for key in keys if key in _THOUGHTS and not found.is_taken(key)]
    if thoughts:
        found.section["reasoning"] = thoughts[0]
        found.taken.append(thoughts[0])
    shape = _calls(by_role, tools, role or "", found)
    propose_results(messages, by_role.get("tool", []), shape, role or "", found)
    for key in ("model", "stop"):
        path = usual_path(answers, key, inside=found.taken)
        if path is not None:
            found.section[key] = path
            found.taken.append(path)
    if role is None:
        call = found.section.get("call", {})
        found.decisions += perhaps_roles(messages, (call.get("name"), call.get("arguments")))
    if (text := _texts(by_role, found)) is not None:
        found.section["text"] = text
    if role is not None:
        pieces = [*answers, *by_role.get("fragment", [])]
        answering = [*dict.fromkeys(value_of(role, one) for one in pieces)]
        own_roles = found.section.setdefault("roles", {})
        own_roles.update(find_fragments(conversations, role, answering, found))
        if not found.section["roles"]:
            del found.section["roles"]
    order = ("role", "roles", "text", "reasoning", "calls", "call", "results", "result")
    found.section = {key: found.section[key] for key in order if key in found.section} | {
        key: value for key, value in found.section.items() if key not in order
    }
    return found


def _roles(
    conversations: Sequence[Sequence[Json]],
    role: str | None,
    tools: Collection[str],
    found: Proposal,
) -> dict[str, list[Json]]:
    """Decides what the values of the role mean; returns the messages of each role."""
    by_value: dict[str, list[Json]] = {}
    before: dict[str, set[str | None]] = {}
    for conversation in conversations:
        last: str | None = None
        for item in conversation:
            value = value_of(role, item)
            by_value.setdefault(value, []).append(item)
            if value != last:
                before.setdefault(value, set()).add(last)
                last = value
    if role is None:
        return {"assistant": by_value.get("", [])}
    meanings = {value: named(role, value) for value in by_value}
    messages = [one for items in by_value.values() for one in items]
    shape = find_calls(messages, tools, role=role, followed=True)
    calls = {id(one) for one in messages if shape is not None and makes_call(shape, one)}
    calls |= {id(one) for value, items in by_value.items() for one in items
              if meanings[value] == "call"}  # fmt: skip
    after = following(conversations, role, calls, meanings)
    for value, items in by_value.items():
        if not meanings[value] and _calling({"": items}, tools, role):
            meanings[value] = "call" if " && " in role else ""
        if not meanings[value]:
            meanings[value] = _structure(
                items, before[value], meanings, tools, found, role, is_after_calls=value in after
            )
    calling = _calling(by_value, tools, role)
    if calling and {meanings[value] for value in calling} == {"tool"}:
        # One record for a call and its result.
        meanings |= dict.fromkeys(calling, "call")
    if "assistant" not in meanings.values():
        # In logs of dialogue systems, "system" is the one that answers.
        asking = {value for value, name in meanings.items() if name == "user"}
        for value, name in meanings.items():
            if name == "system" and before[value] & asking:
                meanings[value] = "assistant"
    callers = {*calling, *(value for value, name in meanings.items() if name == "call")}
    for value in answers_of_calls(meanings, conversations, role, callers):
        if has_text(by_value[value], found):
            meanings[value] = "tool"
            found.decisions.append(f"message.roles: {value!r} follows calls: is it tool or skip?")
    assign_speakers(meanings, before, found)
    unusual = {value: name for value, name in meanings.items() if name and value != name}
    if unusual:
        found.section["roles"] = unusual
    unknown = [repr(value) for value, name in meanings.items() if not name]
    if unknown:
        choices = ", ".join(ROLES)
        found.decisions.append(f"message.roles: {', '.join(unknown)}: which of {choices}?")
    by_role: dict[str, list[Json]] = {}
    for value, items in by_value.items():
        by_role.setdefault(meanings[value], []).extend(items)
    return by_role


def _calling(
    by_value: Mapping[str, Sequence[Json]], tools: Collection[str], role: str
) -> list[str]:
    """Returns the values of the role whose messages all make a call."""
    calling = []
    for value, items in by_value.items():
        shape = find_calls(items, tools, role=role, followed=False)
        if shape is not None and shape.evidence > 1 and len(shape.items) >= len(items):
            calling.append(value)
    return calling


def _structure(
    items: Sequence[Json],
    before: Collection[str | None],
    meanings: Mapping[str, str],
    tools: Collection[str],
    found: Proposal,
    role: str,
    *,
    is_after_calls: bool,
) -> str:
    """Returns what a value means by the messages that have it and those before them, or ""."""
    if _calling({"": items}, tools, role):
        return "assistant"
    if is_after_calls and has_text(items, found):
        if not any(_result_text(items, role)) or "assistant" not in meanings.values():
            value = plain(value_at(role, items[0]))
            found.decisions.append(f"message.roles: {value!r} follows calls: is it tool?")
        return "tool"
    prose = [path for path in prose_paths(items) if not found.is_taken(path)]
    if not prose:
        return "skip"
    return "system" if {*before} == {None} and "user" in meanings.values() else ""


def _result_text(items: Sequence[Json], role: str) -> Iterator[str]:
    for path in dict.fromkeys(path for item in items for path in key_paths(item)):
        values = [value_at(path, item) for item in items]
        is_content = any(isinstance(value, str | dict | list) for value in values)
        if path != role and is_usual("result_text", path) and is_content:
            yield path


def _calls(
    by_role: Mapping[str, Sequence[Json]], tools: Collection[str], role: str, found: Proposal
) -> CallShape | None:
    """Proposes the paths of calls: in an answer, or messages of their own."""
    answers, calling = by_role.get("assistant", []), by_role.get("call", [])
    followed = bool(by_role.get("tool")) or bool(tools)
    shape = find_calls([*calling] or answers, tools, role=role, followed=followed)
    if shape is None:
        if by_role.get("tool") or calling:
            objects = [key for key in _objects(answers or calling) if not found.is_taken(key)]
            under = f": are they under {', '.join(map(repr, objects))}?" if objects else ""
            found.decisions.append(
                f"message.calls: no calls were found, but results of calls were{under}"
            )
        return None
    if calling and (wrapped := _wrapped(shape, calling, by_role)) is not None:
        shape = wrapped
    is_own = shape.path is None or shape.path.startswith("[@]")
    mixed = _mixed(shape, by_role)
    if shape.path is not None:
        found.section["calls"] = shape.path if mixed is None else mixed[0]
        roles = found.section.get("roles", {})
        roles |= {value: "assistant" for value, name in roles.items() if name == "call"}
    elif not calling:
        found.section["calls"] = "[@]"
    if is_own:
        found.taken += filter(None, [shape.name, shape.arguments])
    elif mixed is not None:
        found.mixed = mixed[1]
    elif shape.path is not None and "[?" not in shape.path:
        found.taken.append(shape.path)
    found.section["call"] = {"name": shape.name, "arguments": shape.arguments}
    if shape.evidence == 0:
        found.decisions.append(f"message.calls: are the calls under {shape.path!r}?")
    return shape


def _mixed(shape: CallShape, by_role: Mapping[str, Sequence[Json]]) -> tuple[str, str] | None:
    """Returns (path of calls, key) of a key that holds calls in some messages, and texts too."""
    path = shape.path or ""
    key = path.removeprefix("json(").removesuffix(")")
    if not key or "[" in key or "(" in key:
        return None
    values = [value_at(path, one) for items in by_role.values() for one in items]
    if not any(isinstance(value, str) for value in values):
        return None
    base = path if any(isinstance(value, list) for value in values) else f"[{path}]"
    return f"{base}[?type(@) == 'object' && {shape.name} != null]", key


def _objects(messages: Sequence[Json]) -> list[str]:
    """Returns the keys of messages that hold objects or lists."""
    items = [item for one in messages if isinstance(one, dict) for item in one.items()]
    return [*dict.fromkeys(key for key, value in items if isinstance(value, dict | list) and value)]


def _wrapped(
    shape: CallShape, calling: Sequence[Json], by_role: Mapping[str, Sequence[Json]]
) -> CallShape | None:
    """Returns the shape from the messages, where all kinds of them have one key for their content.

    Of calls it is an object, of others it may be a text.
    """
    path = shape.path
    own = {*map(id, calling)}
    others = [one for items in by_role.values() for one in items if id(one) not in own]
    if path is None or "[" in path or "(" in path or len(shape.items) != len(calling):
        return None
    if all(value_at(path, one) in (None, "") for one in others):
        return None
    arguments = None if shape.arguments is None else f"{path}.{shape.arguments}"
    name = f"{path}.{shape.name}"
    return CallShape(None, name, arguments, [*calling], shape.evidence, [*calling])


def _by_kind(calls: str, answers: Sequence[Json], found: Proposal) -> str | None:
    """Returns the path of the texts in parts that have a `kind`, and proposes that of thoughts.

    None if the calls are no such parts. Parts with a `type` are read as they are.
    """
    path, _, test = calls.partition("[?")
    key = test.partition(" ")[0]
    if not test or key in ("", "type"):
        return None
    parts = [
        one for item in answers for one in as_list(value_at(path, item)) if isinstance(one, dict)
    ]
    texts: str | None = None
    for kind in dict.fromkeys(str(value_at(key, one)) for one in parts):
        chosen = [one for one in parts if value_at(key, one) == kind]
        text = usual_path(chosen, "text")
        if text is None or f"'{kind}'" in calls or "'" in kind:
            continue
        if meaning(kind) == "thought":
            found.section.setdefault("reasoning", f"{path}[?{key} == '{kind}'].{text} | [0]")
        elif kind in ("text", "message", "output_text"):
            texts = f"{path}[?{key} == '{kind}'].{text}"
    return texts


def _is_text(value: Json) -> bool:
    return isinstance(value, str | list)


def _texts(by_role: Mapping[str, Sequence[Json]], found: Proposal) -> str | None:
    """Returns the path of the text: for each role a usual name, else the longest texts."""
    paths: list[str] = []
    for role in ("user", "assistant", "fragment", "system", "developer", ""):
        rows = by_role.get(role, [])
        rest = [one for one in rows if not any(_is_text(value_at(path, one)) for path in paths)]
        if not rest:
            continue
        path = usual_path(rest, "text", inside=found.taken)
        if path is None and len(rest) == len(rows):
            prose = [one for one in prose_paths(rest) if not found.is_taken(one)]
            path = prose[0] if prose else None
        if path is not None and path not in paths:
            paths.append(path)
    for path in [one for one in paths if any(other.startswith(f"{one}.") for other in paths)]:
        # An object for some roles, and the text itself for others.
        paths.remove(path)
        paths.append(f"([{path}][?type(@) == 'string'] | [0])")
    if found.mixed is not None:
        paths = [path for path in paths if path != found.mixed]
        no_calls = "type(json(@)) != 'object' && type(json(@)) != 'array'"
        paths.append(f"([{found.mixed}][?{no_calls}] | [0])")
    calls = str(found.section.get("calls", ""))
    if (kinds := _by_kind(calls, by_role.get("assistant", []), found)) is not None:
        return " || ".join([*paths, kinds])
    if len(paths) == 1 and calls.startswith(f"{paths[0]}[?"):
        tests = " && ".join(
            part.replace("==", "!=")
            for key in ("calls", "results")
            if (part := str(found.section.get(key, "")).partition("[?")[2].rstrip("]"))
        )
        return f"not_null({paths[0]}[?{tests}], {paths[0]})"
    return " || ".join(paths) or None
