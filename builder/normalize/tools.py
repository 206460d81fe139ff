"""Converts tool definitions of any vendor into `{"type": "function", "function": {…}}`.

Shapes: OpenAI (wrapped, flat, Responses, custom), Anthropic `input_schema`, MCP `inputSchema`,
Gemini `functionDeclarations`, Bedrock `toolSpec`, maps of Python types in published datasets
(docs/formats/xlam.md), and those of logs of one's own (`builder.readers.toolkit.tool_forms`).
Wrapped definitions are kept verbatim; others keep their name, description and parameters. No
description is invented.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from builder.conversation import Conversation, Json, ToolCall
from builder.jsonio import loads_text, schema_type
from builder.normalize.draft import Block, Draft, DraftCall, calls_in
from builder.normalize.options import AgentDefinitions, NormalizeOptions, SharedTools
from builder.problem import Problem
from builder.readers.toolkit.made_up import says_unknown
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.tool_forms import (
    decoded,
    described,
    described_keys,
    is_parameter_list,
    is_parameter_map,
    name_of,
    object_schema,
    parameters_of,
    schema_from,
    without_deferred,
)
from builder.readers.toolkit.unknown_keys import unknown_key


def convert(definitions: Iterable[Json], changes: Counter[str]) -> list[dict[str, Json]]:
    """Returns the definitions wrapped, each name once, in order.

    Counts: `tool_wrapped`, `tool_keys_dropped`, `tool_types_mapped`, `custom_tool` (a free-text
    tool becomes a function of one string), `server_tool_dropped` (a provider's own tool, without a
    schema), `duplicate_tool`, `bad_tool` (without a name, whose first key is named, or with a
    schema that cannot be read), `tool_decoded` (JSON text), `tool_required_moved` (a `required`
    list next to the parameters is moved into their schema).
    """
    wrapped: dict[str, dict[str, Json]] = {}
    for logged in flat(definitions):
        tool = _wrap(decoded(logged, changes), changes)
        if tool is not None and wrapped.setdefault(tool_name(tool), tool) is not tool:
            changes["duplicate_tool"] += 1
    return list(wrapped.values())


def tool_name(tool: dict[str, Json]) -> str:
    """Returns the name in a wrapped definition, or ""."""
    return as_str(tool, "function", "name")


def offered_names(definitions: Iterable[Json]) -> set[str] | None:
    """Returns the names of the tools in a list, also of those that `convert` drops.

    None if one has no name: a provider's own tool, such as an MCP server, offers unknown names.
    """
    names: set[str] = set()
    for definition in flat(definitions):
        inner = definition
        while isinstance(inner, dict) and name_of(inner) is None:
            held = (inner.get(key) for key in ("function", "toolSpec", "custom"))
            inner = next((item for item in held if item is not None), None)
        if not isinstance(inner, dict):
            return None
        names.add(str(name_of(inner)))
    return names


def flat(definitions: Iterable[Json]) -> Iterator[Json]:
    """Yields the single definitions in lists, JSON texts and the groups of Gemini and Bedrock."""
    for entry in definitions:
        definition = loads_text(entry)
        if isinstance(definition, list):
            yield from flat(definition)
            continue
        fields = as_dict(definition)
        group = fields.get("functionDeclarations") or fields.get("function_declarations")
        if not isinstance(group, list) and fields.keys() <= {"tools", "toolChoice"}:
            group = fields.get("tools")
        if isinstance(group, list):
            yield from flat(group)
        else:
            yield definition


def is_name_only(definition: Json) -> bool:
    """Returns whether a definition is a name, or an object with nothing but one.

    A tool may have no parameters or no description, but hardly neither. A provider's own tool has
    a type instead.
    """
    if not isinstance(definition, dict):
        return isinstance(definition, str)
    kind, inner = definition.get("type"), definition.get("function")
    if kind not in (None, "", "function", "tool"):
        return False
    spec = inner if isinstance(inner, dict) else definition.get("toolSpec") or definition
    if not isinstance(spec, dict):
        return isinstance(inner, str)
    return {key for key, value in spec.items() if value not in (None, "")} <= {
        "name",
        "tool_name",
        "type",
        "strict",
    }


def _wrap(definition: Json, changes: Counter[str]) -> dict[str, Json] | None:
    if not isinstance(definition, dict):
        changes["bad_tool"] += 1
        return None
    kind = definition.get("type")
    function = definition.get("function")
    if isinstance(function, dict) and as_str(function.get("name")):
        return _verbatim(definition, function, changes)
    if kind == "custom":
        return _custom(definition, changes)
    inner = definition.get("toolSpec") or function
    spec = inner if isinstance(inner, dict) else definition
    if name_of(spec) is None:
        dropped = isinstance(kind, str) and kind != "function"
        changes["server_tool_dropped" if dropped else "bad_tool"] += 1
        if not dropped:
            unread = [key for key in spec if key != "type"] or [*spec]
            changes.update(unknown_key(f"tools.{key}") for key in unread[:1])
        return None
    parameters, where = parameters_of(spec)
    if parameters is None and isinstance(kind, str) and kind not in ("function", "tool"):
        changes["server_tool_dropped"] += 1
        return None
    kept = described(spec)
    if parameters is not None:
        kept["parameters"] = _schema(parameters, changes)
    changes["tool_wrapped"] += 1
    used = {"name", "description", "type", where, *described_keys(spec)}
    required, own = as_list(spec, "required"), as_dict(kept.get("parameters"))
    properties = as_dict(own.get("properties"))
    are_known = all(isinstance(name, str) and name in properties for name in required)
    if required and are_known and not own.get("required"):  # it belongs in their schema
        kept["parameters"] = {**own, "required": required}
        changes["tool_required_moved"] += 1
        used.add("required")
    if set(spec) - used:
        changes["tool_keys_dropped"] += 1
    return {"type": "function", "function": kept}


def _verbatim(
    definition: dict[str, Json], function: dict[str, Json], changes: Counter[str]
) -> dict[str, Json]:
    """Returns a wrapped definition unchanged, unless its parameters are not JSON Schema."""
    parameters = function.get("parameters")
    listed, where = parameters_of(function) if parameters is None else (None, "")
    if isinstance(listed, list) or (isinstance(listed, dict) and is_parameter_map(listed)):
        renamed = {where: "parameters"}
        function = {renamed.get(key, key): item for key, item in function.items()}
        definition = {**definition, "function": function}
        parameters = listed
    if isinstance(parameters, dict) or (
        isinstance(parameters, list) and is_parameter_list(parameters)
    ):
        mapped = _schema(parameters, changes)
        if mapped is not parameters:
            function = {**function, "parameters": mapped}
            definition = {**definition, "function": function}
    if definition.get("type") != "function":
        changes["tool_wrapped"] += 1
        return {"type": "function", "function": function}
    return definition


def _custom(definition: dict[str, Json], changes: Counter[str]) -> dict[str, Json] | None:
    custom = definition.get("custom")
    spec = custom if isinstance(custom, dict) else definition
    if not as_str(spec.get("name")):
        changes["bad_tool"] += 1
        return None
    changes["custom_tool"] += 1
    parameters = object_schema({"input": {"type": "string"}}, ["input"])
    return {"type": "function", "function": {**described(spec), "parameters": parameters}}


def _schema(parameters: Json, changes: Counter[str]) -> Json:
    """Returns the parameters as JSON Schema; the same object if they already are JSON Schema."""
    mapped = schema_from(parameters)
    if mapped == parameters:
        return parameters
    changes["tool_types_mapped"] += 1
    return mapped


def infer(calls: Iterable[tuple[str, dict[str, Json]]]) -> list[dict[str, Json]]:
    """Infers definitions with argument names and types from calls, given as (name, arguments).

    Tools and arguments are in the order of first appearance. An argument is required if every call
    of the tool has it.
    """
    seen: dict[str, list[dict[str, Json]]] = {}
    for name, arguments in calls:
        seen.setdefault(name, []).append(arguments)
    return [
        function_tool(
            name,
            {
                key: schema_of(
                    list(dict.fromkeys(map(schema_type, values))),
                    {
                        schema_type(one)
                        for value in values
                        if isinstance(value, list)
                        for one in value
                    },
                )
                for key in dict.fromkeys(key for item in used for key in item)
                for values in [[item[key] for item in used if key in item]]
            },
            [key for key in used[0] if all(key in item for item in used)],
        )
        for name, used in seen.items()
    ]


def function_tool(
    name: str, properties: dict[str, Json], required: Sequence[str]
) -> dict[str, Json]:
    """Returns a wrapped definition without a description."""
    parameters = object_schema(properties, required)
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def schema_of(kinds: Sequence[str], items: Collection[str]) -> Json:
    """Returns the schema of values of these JSON types; `items` are the types of array items."""
    names: list[Json] = [kind for kind in kinds if kind != "integer" or "number" not in kinds]
    schema: dict[str, Json] = {"type": names[0] if len(names) == 1 else names}
    if names == ["array"] and len(items) == 1:
        schema["items"] = {"type": next(iter(items))}
    return schema


# -- steps on tool definitions: which tools were offered, and the list of the sample ---------------

_UNDEFINED = "undefined_tool"


def calls_undefined(conversation: Conversation) -> bool:
    """Returns whether the model called a tool that is not in the request's list, or has no list."""
    names: set[str] | None = set()
    if conversation.tools:
        if not _lists_all(conversation.tools, conversation.tools_source):
            return False
        names = offered_names(conversation.tools)
    return names is not None and any(
        isinstance(part, ToolCall) and part.name not in names
        for message in conversation.messages
        for part in message.parts
    )


def _lists_all(tools: tuple[Json, ...] | None, source: str | None) -> bool:
    return bool(tools) and source in (None, "logged")


def offered(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Makes turns that call a tool which was not offered context only (`undefined_tool`).

    A log that lists the tools of the request shows it, if none of its other requests defines the
    tool. Without such a list, the result shows it, which says that there is no such tool, or the
    reader knows it. `missing_tools: infer` defines such tools from their calls instead.
    """
    if options.missing_tools != "untrained" or not draft.called:
        return draft
    listed: set[str] | None = None
    if _lists_all(draft.tools, draft.tools_source) and "tools" not in draft.context.missing:
        listed = offered_names(draft.tools or ())
    undefined: set[str] = set()
    if listed is not None:
        shared = options.shared_tools or SharedTools()
        called = {call.name for call in draft.called}
        undefined = called - listed - shared.elsewhere(draft.version).keys()

    def is_undefined(block: Block, call: DraftCall) -> bool:
        if call.name in undefined or block.untrained == _UNDEFINED:
            return True
        is_listed = listed is not None and call.name in listed
        return not is_listed and call.answer is not None and says_unknown(call.answer, call.name)

    ordinals = {
        call.ordinal for block in draft.blocks for call in block.calls if is_undefined(block, call)
    }
    if not ordinals:
        return draft
    blocks = [
        block
        if ordinals.isdisjoint(call.ordinal for call in block.calls)
        else replace(block, untrained=_UNDEFINED)
        for block in draft.blocks
    ]
    offered_calls = tuple(call for call in draft.called if call.ordinal not in ordinals)
    return replace(draft, blocks=tuple(blocks), called=offered_calls)


def tools(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Takes tool definitions from the log, the input's options or other sessions, or infers them.

    Definitions from other sessions, of the same version of the agent, or from other requests of the
    same log are counted as `tool_shared`. Other called tools are inferred from the calls of all
    sessions of the agent, or of this session if the others are not known (`tool_inferred`; the
    source is `mixed` if other definitions are not inferred), except those that were not `offered`.
    If the list is not the one in the log, or a definition cannot be written (a provider's own
    tool), the model saw another list, so `tools` is missing in the context of all turns. `tools:
    called` leaves out definitions that no kept call uses (`tools_left_out`).
    """
    counts: Counter[str] = Counter()
    listed, source = draft.tools, draft.tools_source
    supplied = {"tools"} if listed is None and options.supplied_tools else set()
    if draft.changes.get("system_supplied") or draft.changes.get("system_replaced"):
        supplied.add("system")
    counts["other_version"] += not supplied.isdisjoint(options.of_other_version)
    if listed is None and options.supplied_tools is not None:
        called = {call.name for call in draft.called}
        listed, deferred = without_deferred(options.supplied_tools, called)
        source = options.supplied_source
        counts["deferred_tools"] += len(deferred)
    shared = options.shared_tools or SharedTools()
    if listed is None:
        listed = tuple(shared.listed(draft.version, {call.name for call in draft.called}))
        source = "shared" if listed else source
        counts["tool_shared"] += len(listed)
    definitions = convert(listed, counts)
    known = {tool_name(tool) for tool in definitions}
    kept = {call.name for call in calls_in(draft.blocks)}
    wanted = kept if known else {call.name for call in draft.called}
    added: list[dict[str, Json]] = []
    if options.missing_tools == "untrained" and wanted - known:
        elsewhere = shared.elsewhere(draft.version)
        used = dict.fromkeys(call.name for call in draft.called if call.name in wanted - known)
        added = convert([elsewhere[name] for name in used if name in elsewhere], Counter())
        counts["tool_shared"] += len(added)
        source = "shared" if added and source in (None, "none", "logged") else source
    wanted = wanted - known - {tool_name(tool) for tool in added}
    missing = [
        (call.name, call.arguments)
        for call in draft.called
        if call.name in wanted and isinstance(call.arguments, dict)
    ]
    if options.missing_tools == "reject":
        if lacking := sorted(kept - known):
            detail = f"no definition of {', '.join(lacking)}"
            return Problem("missing_tools", "conversation", detail[:200], records=0)
        missing = []
    inferred = [shared.inferred.get(tool_name(tool), tool) for tool in infer(missing)]
    counts["tool_inferred"] += len(inferred)
    if inferred:
        source = "mixed" if (known or added) and source != "inferred" else "inferred"
    elif not definitions and not added:
        source = "none"
    if added or inferred or counts["server_tool_dropped"] or counts["bad_tool"]:
        draft = replace(draft, hidden=("tools",))
    listing = [*definitions, *added, *inferred]
    if options.tools == "called":
        chosen = [tool for tool in listing if tool_name(tool) in kept]
        counts["tools_left_out"] += len(listing) - len(chosen)
        listing = chosen
    return replace(draft, tools=tuple(listing), tools_source=source).counting(**counts)


def definitions_in(conversations: Iterable[Conversation]) -> dict[str, dict[str, Json]]:
    """Returns {name: definition} of all tools that conversations of one log list.

    Of several definitions of a tool the first is returned.
    """
    definitions: dict[str, dict[str, Json]] = {}
    for conversation in conversations:
        if _lists_all(conversation.tools, conversation.tools_source):
            for tool in convert(conversation.tools or (), Counter()):
                definitions.setdefault(tool_name(tool), tool)
    return definitions


# -- chooses what an agent sent (`builder capture --definitions`) for the logs that lack it --------


def for_log(options: NormalizeOptions, agent: str, conversation: Conversation) -> NormalizeOptions:
    """Returns the options for a log of an agent, with the definitions of the nearest version.

    That is the log's own, else the last before it, else the first after it, as the program sends
    them with or without its terminal interface. Definitions of other agents are not used.
    """
    version = conversation.version
    own = [item for item in options.captured if item.agent == agent]
    tools = _nearest([item for item in own if item.tools is not None], conversation)
    system = _nearest([item for item in own if item.system is not None], conversation)
    if tools is not None:
        options = replace(options, supplied_tools=tools.tools, supplied_source="captured")
    if system is not None:
        options = replace(options, supplied_system=system.system)
    chosen = (("tools", tools), ("system", system))
    others = tuple(name for name, item in chosen if item and version and item.version != version)
    return replace(options, of_other_version=others) if others else options


def _nearest(
    captured: Sequence[AgentDefinitions], conversation: Conversation
) -> AgentDefinitions | None:
    if not captured:
        return None
    version, headless = conversation.version, bool(conversation.headless)
    ranked = sorted(
        captured,
        key=lambda item: (_numbers(item.version), item.version, item.headless in (None, headless)),
    )
    first = [item for item in ranked if item.version == ranked[0].version]
    same = [item for item in ranked if item.version == version]
    before = [
        item for item in ranked if version is None or _numbers(item.version) <= _numbers(version)
    ]
    return (same or before or first)[-1].in_folder(conversation.folder)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d{1,9}", version, re.ASCII)[:4])
