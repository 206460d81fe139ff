"""Proposes the sections of a mapping: what the records of a log are, and their messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from builder.conversation import Json
from builder.jsonio import loads_text
from builder.readers.mapping.names import (
    Calls,
    Columns,
    columns,
    definitions,
    find_calls,
    find_tools,
    has_word,
    is_call,
    is_inside,
    is_usual,
    last_key,
    link,
    meaning,
    part,
    pick,
    plain,
    rank,
    ranked,
    snake,
)
from builder.readers.mapping.read import ordered, places_of
from builder.readers.mapping.spec import ROLES, value_at
from builder.readers.toolkit.narrow import as_dict, as_list, one_or_many
from builder.readers.toolkit.unknown_keys import has_words

_MAX_ROLES, _LONGEST_ROLE = 24, 60
_MESSAGES = 500
"""Messages among which a role is looked for."""
_YES, _NO = ("true", "1"), ("false", "0")
"""Values of a switch like `is_user`; a table in CSV has them as text, in any case."""
_CONTENT = (str, dict, list)
_ORDER = ("role", "roles", "text", "reasoning", "calls", "call", "results", "result", "model",
          "stop")  # fmt: skip


@dataclass(slots=True)
class Proposal:
    """The section `message`, what the user has to decide, and the paths that are read already."""

    section: dict[str, Any] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)


def role_path(messages: Sequence[Json], *, sure: bool = True, asked: bool = False) -> str | None:
    """Returns the path of the role of messages, or None.

    Its values include names for the user and for the assistant; or for any that act, if other
    messages stand elsewhere (`asked`). If it need not be `sure`, its key has a usual name, and it
    has at least two values, in all messages.
    """
    messages = messages[:_MESSAGES]
    found = columns(messages)
    likely = None
    for path in ranked(found, "role"):
        names = {plain(value) for value in found[path]}
        if {name.lower() for name in names} <= {*_YES, *_NO}:
            if _is_switch(path):
                return path
            continue
        if "" in names or len(names) > _MAX_ROLES or max(map(len, names)) > _LONGEST_ROLE:
            continue
        meanings, is_clear = {*map(meaning, names)}, is_usual("clear_role", path)
        acting = meanings & {"user", "assistant", "tool", "call"}
        is_known = asked and is_usual("role", path) and len(acting) > (0 if is_clear else 1)
        if is_known or {"user", "assistant"} <= acting:
            return path
        is_likely = is_usual("role", path) and (is_clear or meanings & {*ROLES[:6]})
        if is_likely and len(names) > 1 and len(found[path]) == len(messages):
            likely = likely or path
    return None if sure else likely


def _is_switch(path: str) -> bool:
    return is_usual("is_user", path) or is_usual("is_assistant", path)


def _whole_role(messages: Sequence[Json], role: str) -> str:
    """Returns the path of the role; where some messages have none, with the one that they have.

    Items of the Responses API have `role` if they are messages, and `type` in any case.
    """
    rest = columns(one for one in messages if value_at(role, one) is None)
    for path in ranked(rest, "role"):
        if is_usual("role", path) and any(meaning(plain(value)) for value in rest[path]):
            return f"{role} || {path}"
    return role


def named(role: str, value: str) -> str:
    """Returns what a value of a role means by its name, or ""."""
    if value.lower() in (*_YES, *_NO) and _is_switch(role):
        return "user" if (value.lower() in _YES) == is_usual("is_user", role) else "assistant"
    return meaning(value)


def propose(
    conversations: Sequence[Sequence[Json]], apart: Collection[str] = (), role: str | None = None
) -> Proposal:
    """Returns the proposal for the messages of conversations.

    `apart` are paths of what a conversation is named, or ordered by. `role`: its path; None: there
    is none, all messages are the assistant's.
    """
    messages = [one for conversation in conversations for one in conversation]
    role = None if role is None else _whole_role(messages, role)
    found = Proposal({"role": role or "'assistant'"}, taken=[*apart])
    found.taken += [] if role is None else role.split(" || ")
    if (tools := find_tools(messages)) is not None:
        found.taken.append(tools)
    groups = {"assistant": messages} if role is None else _groups(messages, role, found)
    propose_acts(conversations, groups, found)
    answers = columns(groups.get("assistant", []) + groups.get("fragment", []))
    for key in ("model", "stop"):
        if (path := pick(answers, key, without=found.taken)) is not None:
            found.section[key] = path
            found.taken.append(path)
    _propose_text(groups, found)
    found.section = {key: found.section[key] for key in _ORDER if found.section.get(key)}
    return found


def propose_acts(
    conversations: Sequence[Sequence[Json]], groups: Mapping[str, Sequence[Json]], found: Proposal
) -> None:
    """Proposes the paths of thoughts, calls and results in messages, which are grouped by role."""
    acting = [one for role in ("assistant", "fragment", "call", "thought")
              for one in groups.get(role, [])]  # fmt: skip
    if (thought := pick(columns(acting), "thought", without=found.taken)) is not None:
        found.section["reasoning"] = thought
        found.taken.append(thought)
    calls = _propose_calls(groups, found)
    results = _Results(conversations, calls, found)
    if tools := groups.get("tool", []):
        results.of_messages(tools)
    elif calls is not None and not results.beside(calls):
        results.within([*acting, *groups.get("user", [])])


def _groups(messages: Sequence[Json], role: str, found: Proposal) -> dict[str, list[Json]]:
    """Says what the values of the role mean; returns the messages of each role."""
    by_value: dict[str, list[Json]] = {}
    for one in messages:
        by_value.setdefault(plain(value_at(role, one)), []).append(one)
    meanings = {value: named(role, value) for value in by_value}
    for value, name in meanings.items() if "call" not in meanings.values() else ():
        calls = find_calls(by_value[value], found.taken) if name == "tool" else None
        if calls is not None and len(calls.items) >= len(by_value[value]):
            meanings[value] = "call"  # one record for a call and its result
    if unusual := {value: name for value, name in meanings.items() if name and value != name}:
        found.section["roles"] = unusual
    if unknown := [repr(value) for value, name in meanings.items() if not name]:
        found.questions.append(f"message.roles: {', '.join(unknown)}: which of {', '.join(ROLES)}?")
    for name, speaker in (("user", "user"), ("assistant", "model")):
        values = [value for value, one in meanings.items()
                  if one == name and any(map(has_words, by_value[value]))]  # fmt: skip
        is_unclear = name == "user" or any(snake(value) == "agent" for value in values)
        if is_unclear and len({*map(snake, values)}) > 1:
            several = " and ".join(map(repr, values))
            found.questions.append(f"message.roles: {several}: is each of them the {speaker}?")
    groups: dict[str, list[Json]] = {}
    for value, items in by_value.items():
        groups.setdefault(meanings[value], []).extend(items)
    return groups


def _propose_calls(groups: Mapping[str, Sequence[Json]], found: Proposal) -> Calls | None:
    """Proposes the paths of calls: in an answer, or messages of their own."""
    calling = groups.get("call", [])
    calls = find_calls(calling or groups.get("assistant", []), found.taken)
    if calls is None:
        if calling or groups.get("tool"):
            asked = "no calls were found, but results of calls: where are they?"
            found.questions.append(f"message.calls: {asked}")
        return None
    found.section["call"] = {"name": calls.name, "arguments": calls.arguments}
    beside = {path: values for path, values in columns(calling).items()
              if not is_inside(calls.name, [path]) and not has_word("results", path)}  # fmt: skip
    says = pick(beside, "text", without=[*found.taken, calls.arguments])
    if calls.path is None and not (calling and says is None):
        found.section["calls"] = f"[@][?{calls.name} && {calls.arguments} != null]"
    elif calls.path is not None:
        found.section["calls"] = calls.path
    if calling and "calls" in found.section:
        roles = found.section["roles"]
        roles |= {value: "assistant" for value, name in roles.items() if name == "call"}
    is_own = calls.path is None or calls.path.startswith("[@]")
    found.taken += [calls.name, calls.arguments] if is_own else [str(calls.path)]
    return calls


def result_key(found: Columns, without: Collection[str]) -> str | None:
    """Returns the path of what came back, whole: its name says so, and it is no id or number."""
    usual = [
        path
        for path, values in found.items()
        if not is_inside(path, without)
        and not any(is_inside(one, [path]) for one in without)
        and not path.endswith(")")
        and (is_usual("results", path) or (has_word("results", path) and _is_whole(path, values)))
        and not any(isinstance(one, bool) for one in values)
    ]
    path = min(usual, key=lambda path: (path.count("."), rank("results", path)), default=None)
    return None if path is None else _unwrapped(found, path)


def _is_whole(path: str, values: Sequence[Json]) -> bool:
    """Returns whether a key holds what came back, and not a number or an id of it."""
    return not has_word("numbers", path) and not all(isinstance(v, int | float) for v in values)


def _unwrapped(found: Columns, path: str) -> str:
    """Returns the path of what is alone in the objects at a path, if it is a result or its text."""
    keys = {key for one in found[path] for key in as_dict(one)}
    inner = f"{path}.{part(next(iter(keys), ''))}"
    is_only = len(keys) == 1 and all(isinstance(one, dict) for one in found[path])
    is_result = is_usual("results", inner) or is_usual("result_text", inner)
    return inner if is_only and is_result and inner in found else path


@dataclass(slots=True)
class _Results:
    """Proposes `message.results` and `message.result`: where results stand, and their parts."""

    conversations: Sequence[Sequence[Json]]
    calls: Calls | None
    found: Proposal

    def of_messages(self, tools: Sequence[Json]) -> None:
        """Proposes messages of role tool, or what stands in them: a list, or objects with an id."""
        key = result_key(columns(tools), self.found.taken)
        if key is None or not self._inside(tools, key):
            self.found.section["result"] = self._parts(tools, self._link(tools), self.found.taken)

    def beside(self, calls: Calls) -> bool:
        """Proposes results that stand in the calls, or in the messages that are calls."""
        own = [calls.name, calls.arguments]
        path = result_key(columns(calls.items, 1), own)
        if path is None:
            return False
        base = calls.path or "[@]"
        held = [value_at(base, one) for group in self.conversations for one in group]
        if any(isinstance(one, str) for one in held):
            base = f"json({base})"
        if "[?" in base:
            base = f"{base[:-1]} && {path} != null]"
        else:
            is_list = any(isinstance(loads_text(one), list) for one in held)
            base = f"{base if is_list else f'[{base}]'}[?{path} != null]"
        parts = self._parts(calls.items, None, own)
        if (name := pick(columns(calls.items, 0), "call_id", (str, int), without=own)) is not None:
            self.found.section["call"]["id"] = parts["id"] = name
        self.found.section |= {"results": base, "result": parts}
        self.found.taken += [path] if base.startswith("[@]") else []
        return True

    def within(self, messages: Sequence[Json]) -> None:
        """Proposes results under a key of messages that are not the tools'."""
        path = result_key(columns(messages), self.found.taken)
        if path is None:
            return
        others = [one for one in messages if value_at(path, one) and find_calls([one]) is None]
        if is_usual("answer", path) and others:
            asked = f"is {path!r} what tools gave back, or what the model says?"
            self.found.questions.append(f"message.results: {asked}")
        if not self._inside(messages, path):
            is_list = any(isinstance(value_at(path, one), list) for one in messages)
            results = f"{path if is_list else f'[{path}]'}[?@ != null && @ != '']"
            self.found.section |= {"results": results, "result": {"text": "@"}}
            self.found.taken.append(path)

    def _inside(self, messages: Sequence[Json], path: str) -> bool:
        """Proposes objects with a text, in a list or one by one, under a key of messages."""
        items = [one for message in messages for one in _found(message, path)]
        is_list = any(isinstance(value_at(path, one), list) for one in messages)
        if not items or not all(isinstance(one, dict) for one in items):
            return False
        linked = self._link([], path)
        parts = self._parts(items, linked, [])
        if "text" not in parts or not (is_list or linked is not None):
            return False
        results = path if is_list else f"[{path}][?@ != null]"
        self.found.section |= {"results": results, "result": parts}
        self.found.taken.append(path)
        return True

    def _parts(
        self, items: Sequence[Json], linked: tuple[str, str] | None, without: Collection[str]
    ) -> dict[str, str]:
        """Returns the paths from results. Of objects with nothing but a text, it is the text."""
        found, paths = columns(items), {}
        without = [*without, *(linked or ())[1:]]
        text = result_key(found, without) or pick(found, "result_text", _CONTENT, without=without)
        if text is not None:
            paths["text"] = _unwrapped(found, text)
        if linked is not None:
            self.found.section["call"]["id"], paths["id"] = linked
        without = [*without, *paths.values()]
        if self.calls is not None and (name := pick(found, "result_name", without=without)):
            names = {value_at(self.calls.name, one) for one in self.calls.items}
            paths |= {"name": name} if {*found[name]} <= names else {}
        error = pick(found, "error", (bool, str, int, dict), without=without)
        if error is not None:
            paths["error"] = error
            if any(isinstance(value, str) and has_words(value) for value in found[error]):
                paths["text"] = error if text is None else f"not_null({paths['text']}, {error})"
        return paths

    def _link(self, results: Sequence[Json], inside: str | None = None) -> tuple[str, str] | None:
        """Returns the paths of the ids of calls and results; `inside`: where results stand."""
        if self.calls is None:
            return None
        path = self.calls.path
        ours, theirs = (
            [[one for message in group for one in _found(message, place)
              if place is not None or id(one) in ids] for group in self.conversations]
            for place, ids in ((path, {*map(id, self.calls.items)}), (inside, {*map(id, results)}))
        )  # fmt: skip
        without = [self.calls.name, self.calls.arguments]
        return link(ours, theirs, [*without, *(self.found.taken if path is None else [])])


def _found(message: Json, path: str | None) -> list[Json]:
    value = message if path is None else loads_text(value_at(path, message))
    return [] if value in (None, "") else one_or_many(value)


def _propose_text(groups: Mapping[str, Sequence[Json]], found: Proposal) -> None:
    """Proposes the path of the text: a usual name for each role, else the only text with words.

    What stands beside a call and is named as a result is never the model's text.
    """
    result, texts = found.section.get("result", {}), list[str]()
    for role in ("user", "assistant", "fragment", "thought", "system", "developer"):
        rest = [one for one in groups.get(role, [])
                if not any(isinstance(value_at(path, one), str | list) and value_at(path, one)
                           for path in texts)]  # fmt: skip
        is_acting = role == "assistant" and "calls" in found.section
        usual = {path: values for path, values in columns(rest).items() if path[-1] != ")"
                 and not (is_acting and has_word("results", path))}  # fmt: skip
        path = pick(usual, "text", (str, list), without=found.taken)
        if path is None and rest and not texts and role in ("user", "assistant"):
            prose = (path for path, values in usual.items() if isinstance(values[0], str)
                     and any(map(has_words, values)))  # fmt: skip
            path = next((one for one in prose if not is_inside(one, found.taken)), None)
            if path is not None and path != found.section.get("reasoning"):
                found.questions.append(f"message.text: is it {path!r}?")
        texts += [] if path is None else [path]
    thought = found.section.get("reasoning")
    says = any(value_at(path, one) for path in texts for one in groups.get("assistant", []))
    if thought is not None and not says and "thought" not in groups:
        found.questions.append(f"message.text: is {thought!r} what the model says, or its thought?")
        del found.section["reasoning"]
        texts.append(str(thought))
    for path in [one for one in texts if any(other.startswith(f"{one}.") for other in texts)]:
        texts.remove(path)  # an object for some roles, and the text itself for others
        texts.append(f"([{path}][?type(@) == 'string'] | [0])")
    found.section["text"] = text = " || ".join(texts)
    tools = groups.get("tool", []) if "results" not in found.section else []
    if "text" not in result and any(not value_at(text or None, one) for one in tools):
        found.questions.append("message.result.text: where is the text of results?")


Shape = tuple[dict[str, Any], Proposal]
"""The section `conversation` and the rest of a proposal."""


def propose_shape(rows: Sequence[dict[str, Json]]) -> Shape | None:
    """Returns the proposal for records: the first of these that they are.

    A record is a message (it has a role and a text of its own), a conversation with its messages
    or steps in a list, a question and its answer in columns, or a conversation with such in a list.
    Roles that are not named usually are tried last.
    """
    found = (
        _messages(rows, sure=True)
        or _lists(rows, "sure")
        or _columns(rows)
        or _turns(rows)
        or _lists(rows, "steps")
        or _messages(rows, sure=False)
        or _lists(rows, "likely")
    )
    if found is not None:
        keys = dict.fromkeys(key for row in rows for key in row if has_words(row[key]))
        found[1].questions += [
            f"conversation: {key!r} is the worse of two answers: a mapping has no place for it"
            for key in keys if has_word("worse", key)
        ]  # fmt: skip
    return found


def _messages(rows: Sequence[dict[str, Json]], *, sure: bool) -> Shape | None:
    """Returns the proposal for records that are messages, grouped by a key."""
    role, session = role_path(rows, sure=sure), _session(rows)
    if role is None or (not sure and session is None):
        return None
    has_text = any(is_usual("text", path) and path != role for path in columns(rows))
    if not has_text and find_calls(rows, [role]) is None:
        return None
    order = _order(rows, session or "'conversation'")
    groups: dict[str, list[Json]] = {}
    for row in ordered(rows, [value_at(order, row) for row in rows]) or rows:
        groups.setdefault(str(value_at(session, row)), []).append(row)
    message = propose([*groups.values()], [one for one in (session, order) if one], role)
    if session is None:
        message.questions.append("conversation.id: is the whole file one conversation?")
    top = _top(rows)
    texts = str(message.section.get("text", "")).split(" || ")
    top = {key: path for key, path in top.items()
           if path != message.section.get("model") and path not in texts}  # fmt: skip
    place = {"id": session or "'conversation'"}
    if _speaks_last(message, groups):
        parts = {"role": message.section["role"], "text": message.section.pop("text")}
        made = _made(message, parts["role"])
        place = {
            "messages": f"[{made}, {{role: {parts['role']}, text: {parts['text']}}}]"
            "[?calls || text]",
            "session": place["id"],
        }
    return place | ({} if order is None else {"order": order}) | top, message


def _speaks_last(message: Proposal, groups: Mapping[str, Sequence[Json]]) -> bool:
    """Returns whether the text of answers with calls and results comes after the results.

    It is if no answer follows them; it is asked where that differs.
    """
    section = message.section
    text, calls, results = (section.get(key) for key in ("text", "calls", "results"))
    if calls is None or results is None or str(calls).startswith("[@]"):
        return False
    after: list[bool] = []
    for group in groups.values():
        for one, following in zip(group, [*group[1:], None], strict=True):
            if all(value_at(path, one) for path in (text, calls, results)):
                after.append(following is None or _meaning(section["role"], following) == "user")
    if any(after) and not all(after):
        what = "does the text of an answer with calls come before them, or after their results?"
        message.questions.append(f"message.text: {what}")
    return bool(after) and all(after)


def _made(message: Proposal, role: str = "'assistant'") -> str:
    """Returns the message that holds the calls and results of a record, as a path makes it.

    The section `message` then reads the keys of what the path makes.
    """
    section = message.section
    keys = [key for key in ("reasoning", "calls", "results") if key in section]
    if "call" in section and "calls" not in section:
        keys, section["calls"] = [*keys, "calls"], "[@]"
    made = "".join(f", {key}: {section[key]}" for key in keys)
    order = ("role", "roles", "text", "reasoning", "calls", "call", "results", "result", "model")
    known = section | {"role": "role", "text": "text"} | {key: key for key in keys}
    message.section = {key: known[key] for key in order if key in known}
    return f"{{role: {role}{made}}}"


def _session(rows: Sequence[dict[str, Json]]) -> str | None:
    shared = {path: one for path, one in _names(rows).items() if len({*one}) < len(one)}
    return pick(shared, "session") or pick(shared, "id")


def _names(rows: Sequence[Json]) -> dict[str, list[str]]:
    """Returns the columns of texts and numbers that all rows have."""
    return {
        path: [*map(str, values)]
        for path, values in columns(rows).items()
        if len(values) == len(rows)
        and all(isinstance(one, str | int) and not isinstance(one, bool) for one in values)
    }


def _order(rows: Sequence[Json], session: str) -> str | None:
    """Returns the path of what orders the records of a conversation: they all differ in it."""
    for path in ranked(found := columns(rows), "order"):
        places = {(str(value_at(session, row)), str(value_at(path, row))) for row in rows}
        is_whole = len(places) == len(found[path]) == len(rows) and path != session
        if is_whole and is_usual("order", path) and places_of(found[path]) is not None:
            return path
    return None


def _lists(
    rows: Sequence[dict[str, Json]], kind: Literal["sure", "steps", "likely"]
) -> Shape | None:
    """Returns the proposal for records with a list of messages each, or of steps with calls.

    The user's message may stand before the list, and an answer after it.
    """
    pooled = {path: [one for value in values for one in as_list(value)]
              for path, values in columns(rows, 3).items()}  # fmt: skip
    pooled = {path: items for path, items in pooled.items() if items
              and all(isinstance(one, dict) for one in items)
              and not all(map(is_call, items))}  # fmt: skip
    prompt = pick(columns(rows, 1), "prompt", (str, list))
    roles: dict[str, str | None] = {}
    if kind == "steps":
        roles = {path: None for path, items in pooled.items() if prompt is not None
                 and find_calls(items) is not None and not definitions(items)}  # fmt: skip
    for asked in (prompt is not None, True) if kind != "steps" else ():
        found = {path: role_path(items, sure=kind == "sure", asked=asked)
                 for path, items in pooled.items() if path != prompt}  # fmt: skip
        roles = roles or {path: role for path, role in found.items() if role}
    best = max(roles, key=lambda path: len(pooled[path]), default=None)
    if best is None or _of_several(pooled[best]):
        return None
    role = roles[best] or "'assistant'"
    speakers = {_meaning(role, one) for one in pooled[best]}
    reply = _reply(rows, best, pooled, role)
    if reply is None and kind == "sure" and "assistant" not in speakers:
        return None
    messages = read = best
    if "user" not in speakers and prompt is not None:
        is_list = any(isinstance(value_at(prompt, row), list) for row in rows)
        first = prompt if is_list else f"[{{role: 'user', text: {prompt}}}]"
        messages = f"[{first}, {best}][]"
        read = messages if is_list else best
    elif reply is not None:
        messages = f"[{best}, {reply[1]}][] | [?@]"
        read = best if "'assistant'" in reply[1] else messages
    message = propose([[*map(as_dict, as_list(value_at(read, row)))] for row in rows], (),
                      roles[best])  # fmt: skip
    for key in ("role", "text") if read != messages else ():
        held = message.section.get(key, key)
        either = f"{key} || {held}" if held.startswith("'") else f"{held} || {key}"
        message.section[key] = key if held == key else either
    rest = [path for path in roles if path not in (best, reply and reply[0])
            and not is_inside(path, [best])]  # fmt: skip
    message.questions += [f"conversation.messages: is it {best!r}, or {one!r}?" for one in rest]
    own = _own_id(rows, best)
    begun: dict[str, Json] = {}
    for row in rows if own else ():
        begin: Json = [*as_list(value_at(best, row))[:1]]
        if begin and begun.setdefault(str(value_at(own["id"], row)), begin) != begin:
            what = f"are records with one {own['id']!r} parts of one conversation?"
            message.questions.append(f"conversation.session: {what}")
            break
    return {"messages": messages} | own | _top(rows, best), message


def _meaning(role: str, one: Json) -> str:
    return named(role, plain(value_at(role, one)))


def _of_several(items: Sequence[Json]) -> bool:
    """Returns whether items name their conversation, and it is not the same one."""
    found = _names(items)
    name = pick(found, "session")
    return name is not None and len({*found[name]}) > 1


def _reply(
    rows: Sequence[dict[str, Json]], best: str, pooled: Mapping[str, Sequence[Json]], role: str
) -> tuple[str, str] | None:
    """Returns the path of what answers lists of messages, and that of its messages.

    None if a list ends with an answer itself, or if there is nothing else.
    """
    ends = [items[-1] for row in rows if (items := as_list(value_at(best, row)))]
    if "assistant" in {_meaning(role, one) for one in ends}:
        return None
    found = columns(rows, 2)
    for path in ranked(found, "answer"):
        if is_inside(path, [best]) or is_inside(best, [path]):
            continue
        speakers = {_meaning(role, one) for one in pooled.get(path) or filter(as_dict, found[path])}
        if "assistant" in speakers and speakers <= {"assistant", "tool"}:
            return path, path if path in pooled else f"[{path}]"
        is_answer = meaning(last_key(path)) == "assistant" and not has_word("numbers", path)
        is_text = all(isinstance(one, str) for one in found[path])
        if is_text and (is_usual("answer", path) or is_answer):
            return path, f"[{{role: 'assistant', text: {path}}}]"
    return None


def _own_id(rows: Sequence[dict[str, Json]], *inside: str) -> dict[str, str]:
    found = columns(rows)
    path = pick(found, "session", (str, int), without=inside)
    path = path or pick(found, "id", (str, int), without=inside)
    return {} if path is None else {"id": path}


def _columns(rows: Sequence[dict[str, Json]]) -> Shape | None:
    """Returns the proposal for rows with a question, and its answer or calls, in columns."""
    tools = find_tools(rows)
    found = {path: values for path, values in columns(rows, 1).items()
             if not is_inside(path, [tools or ""])}  # fmt: skip
    question = _spoken(found, "prompt", "user")
    if question is None:
        return None
    rest = {path: values for path, values in found.items() if path != question}
    answer = _spoken(rest, "answer", "assistant")
    message = Proposal(taken=[one for one in (question, answer, tools) if one is not None])
    propose_acts([[row] for row in rows], {"assistant": rows}, message)
    made = _made(message)
    answered = [answer] if answer is not None else []
    if "call" in message.section:
        answered.append(made.partition("calls: ")[2].partition(", results: ")[0].rstrip("}"))
    asking = [row for row in rows if value_at(question, row)]
    both = [row for row in asking if any(value_at(path, row) for path in answered)]
    if not both or 2 * len(both) < len(asking):
        return None
    messages = [f"{{role: 'user', text: {question}}}"]
    if "call" in message.section:
        messages.append(made)
        answer = None if answer is None else f"{{role: 'assistant', text: {answer}}}"
    elif answer is not None:
        answer = made[:-1] + f", text: {answer}}}"
    messages += [] if answer is None else [answer]
    parts = [key for key in ("text", "calls", "results") if key in message.section]
    path = f"[{', '.join(messages)}]"
    conversation = {"messages": path if len(parts) == 1 else f"{path}[?{' || '.join(parts)}]"}
    return conversation | _row_session(rows, question, message) | _top(rows), message


def _spoken(found: Columns, key: str, role: str) -> str | None:
    """Returns the column of questions or answers: by its name, or by the role that it names."""
    texts = {
        path: values
        for path, values in found.items()
        if all(isinstance(one, str) for one in values)
        and (path.startswith("input.") or not is_usual("arguments", path.rpartition(".")[0] or "-"))
    }
    roles = [path for path, values in texts.items() if meaning(last_key(path)) == role
             and any(map(has_words, values)) and not is_usual("model", path)]  # fmt: skip
    return pick(texts, key) or min(roles, default=None)


def _row_session(
    rows: Sequence[dict[str, Json]], question: str, message: Proposal
) -> dict[str, str]:
    """Returns `session` and `order`, or `id`, of rows.

    Rows of one session ask different questions; rows with one question are several answers to it.
    """
    name = _session(rows)
    if name is None:
        return _own_id(rows, question)
    asked = {(str(value_at(name, row)), str(value_at(question, row))) for row in rows}
    order = _order(rows, name)
    if len(asked) < len(rows) or not (is_usual("session", name) or order):
        return {"id": name}
    if not has_word("conversation", name):
        what = f"are rows with one {name!r} turns of one conversation, or is it the id of a row?"
        message.questions.append(f"conversation.session: {what}")
    return {"session": name} | ({"order": order} if order is not None else {})


def _turns(rows: Sequence[dict[str, Json]]) -> Shape | None:
    """Returns the proposal for records with a list whose items hold a question and its answer."""
    for path, values in columns(rows).items():
        items = [as_dict(one) for value in values for one in as_list(value)]
        found = _columns(items) if items else None
        if found is None or ", text: " not in found[0]["messages"].partition("'assistant'")[2]:
            continue
        is_turns = is_usual("one_after_another", path)
        if _of_several(items) or (is_usual("one_each", path) and not is_turns):
            return None  # the items are records
        conversation, message = found
        if not is_turns:
            asked = f"are the items of {path!r} turns of one conversation?"
            message.questions.append(f"conversation.messages: {asked}")
        turn, _, condition = conversation["messages"].rpartition("][?")
        messages = f"{path}[].{turn}][] | [?{condition}" if turn else f"{path}[].{condition}[]"
        return {"messages": messages} | _own_id(rows, path) | _top(rows), message
    return None


def _top(rows: Sequence[dict[str, Json]], *inside: str) -> dict[str, Any]:
    """Returns the paths of what a conversation has once."""
    found = columns(rows)
    top: dict[str, Any] = {}
    for key in ("system", "model", "license"):
        if (path := pick(found, key, without=inside)) is not None:
            top[key] = path
    setup = (path for path in found if path.endswith(("setup.prompt", "config.prompt")))
    if "system" not in top and (path := next(setup, None)) is not None:
        top = {"system": path} | top
    tools = find_tools(rows)
    if tools is None and inside:
        held = find_tools([one for row in rows for one in as_list(value_at(inside[0], row))])
        tools = None if held is None else f"{inside[0]}[].{held} | [0]"
    if tools is not None:
        top["tools"] = tools
    outcome: dict[str, str] = {}
    for path in columns(rows, 1):
        if is_usual("outcome", path) and not is_inside(path, inside):
            name = last_key(path)
            outcome.setdefault("reward" if name == "grade" else name, path)
    return top | ({"outcome": outcome} if outcome else {})
