"""Steps on tool definitions: which tools were offered, and the list of the sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import Conversation, Json, ToolCall
from builder.normalize.draft import Block, Draft, DraftCall, calls_in
from builder.normalize.options import NormalizeOptions
from builder.normalize.shared import SharedTools
from builder.normalize.tools import convert, infer, offered_names, tool_name
from builder.problem import Problem
from builder.readers.toolkit.made_up import says_unknown
from builder.readers.toolkit.tool_forms import without_deferred

UNDEFINED = "undefined_tool"


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
    """Returns whether the log has tools, and they are the list of the request."""
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
        if call.name in undefined or block.untrained == UNDEFINED:
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
        else replace(block, untrained=UNDEFINED)
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
        draft = draft.having([_without_tools(block) for block in draft.blocks])
    listing = [*definitions, *added, *inferred]
    if options.tools == "called":
        chosen = [tool for tool in listing if tool_name(tool) in kept]
        counts["tools_left_out"] += len(listing) - len(chosen)
        listing = chosen
    return replace(draft, tools=tuple(listing), tools_source=source).counting(**counts)


def _without_tools(block: Block) -> Block:
    return block.lacking("tools") if block.role == "assistant" else block


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
