"""Steps on content: thoughts, tool definitions, characters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from builder.conversation import Json
from builder.jsonio import dumps
from builder.normalize.draft import Block, Draft, DraftCall, calls_in
from builder.normalize.options import NormalizeOptions
from builder.normalize.shared import SharedTools
from builder.normalize.tools import convert, infer, tool_name
from builder.problem import Problem
from builder.text import are_plain, break_tokens, clean, map_strings, token_pattern


def reasoning(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Drops thoughts, or keeps them where the template does: after the last user turn.

    Source: the template's last_query_index, qwen3-template-pitfalls.md A1. In units other than the
    conversation each example has its own last query, so `builder.normalize.units` drops the hidden
    thoughts.
    """
    has = [any(text.strip() for text in block.reasoning) for block in draft.blocks]
    query = max(at for at, block in enumerate(draft.blocks) if block.role == "user")
    blocks = []
    dropped = 0
    for at, block in enumerate(draft.blocks):
        is_visible = at > query or options.unit != "conversation"
        keep = options.reasoning == "keep" and is_visible and has[at]
        dropped += has[at] and not keep
        text = "\n\n".join(text.strip("\n") for text in block.reasoning if text.strip())
        thoughts = (text,) if keep else ()
        blocks.append(block if thoughts == block.reasoning else replace(block, reasoning=thoughts))
    draft = draft.having(blocks, {"reasoning_dropped": dropped})
    state = "dropped" if draft.changes.get("reasoning_dropped") else "none"
    if any(block.reasoning for block in blocks):
        state = "kept"
    return replace(draft, reasoning=state)


def tools(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Takes tool definitions from the log, the input's options or other sessions, or infers them.

    Definitions from other sessions, of the same version of the agent, are counted as `tool_shared`.
    A called tool without a definition gets one that is inferred from the calls of all sessions of
    the agent, or of this session if the others are not known (`tool_inferred`; the source is
    `mixed` if other definitions are not inferred). If a definition is inferred or cannot be written
    (a provider's own tool), the model saw another list, so `tools` is missing in the context of all
    turns. `tools: called` leaves out definitions that no kept call uses (`tools_left_out`).
    """
    counts: Counter[str] = Counter()
    listed, source = draft.tools, draft.tools_source
    if listed is None and options.supplied_tools is not None:
        listed, source = options.supplied_tools, "supplied"
    shared = options.shared_tools or SharedTools()
    if listed is None:
        listed = tuple(shared.listed(draft.version, {name for name, _ in draft.called}))
        source = "shared" if listed else source
        counts["tool_shared"] += len(listed)
    definitions = convert(listed, counts)
    known = {tool_name(tool) for tool in definitions}
    kept = {call.name for call in calls_in(draft.blocks)}
    wanted = kept if known else {name for name, _ in draft.called}
    missing = [(name, given) for name, given in draft.called if name in wanted - known]
    if options.missing_tools == "reject":
        if lacking := sorted(kept - known):
            detail = f"no definition of {', '.join(lacking)}"
            return Problem("missing_tools", "conversation", detail[:200], records=0)
        missing = []
    inferred = [shared.inferred.get(tool_name(tool), tool) for tool in infer(missing)]
    counts["tool_inferred"] += len(inferred)
    if inferred:
        source = "mixed" if known and source != "inferred" else "inferred"
    elif not definitions:
        source = "none"
    if inferred or counts["server_tool_dropped"] or counts["bad_tool"]:
        draft = draft.having([_without_tools(block) for block in draft.blocks])
    listing = [*definitions, *inferred]
    if options.tools == "called":
        chosen = [tool for tool in listing if tool_name(tool) in kept]
        counts["tools_left_out"] += len(listing) - len(chosen)
        listing = chosen
    return replace(draft, tools=tuple(listing), tools_source=source).counting(**counts)


def _without_tools(block: Block) -> Block:
    if block.role != "assistant" or "tools" in block.hidden:
        return block
    return replace(block, hidden=(*block.hidden, "tools"))


def characters(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Cleans the Unicode of logged text and breaks up its control tokens (see `builder.text`).

    Option `control_tokens`: `context` breaks tokens up in untrained text and rejects conversations
    with tokens in trained text, `neutralise` breaks them up everywhere, `reject` rejects
    conversations with tokens anywhere. Counts `control_tokens`.
    """
    counts: Counter[str] = Counter()
    pattern = token_pattern(options.added_tokens)
    in_context: list[str] = []
    in_trained: list[str] = []

    def cleaned(text: str) -> str:
        return clean(text, counts)

    def broken(text: str, found: list[str]) -> str:
        text = cleaned(text)
        broken_text, n = break_tokens(text, pattern)
        if n:
            found.extend(pattern.findall(text))
        return broken_text

    def defined(tool: Json) -> Json:
        text = dumps(tool) if are_plain(options.added_tokens) else ""
        same = text and text.isascii() and not pattern.search(text)
        return tool if same else map_strings(tool, partial(broken, found=in_context))

    def called(call: DraftCall) -> DraftCall:
        name, arguments, text = cleaned(call.name), call.arguments, dumps(call.arguments)
        if not text.isascii():
            arguments = map_strings(arguments, cleaned)
            text = dumps(arguments)
        answer = None if call.answer is None else broken(call.answer, in_context)
        return replace(call, name=name, arguments=arguments, answer=answer, written=text)

    def written(block: Block) -> Block:
        is_target = block.role == "assistant" and block.untrained is None
        found = in_trained if is_target else in_context
        texts = tuple(broken(text, found) for text in block.texts)
        thoughts = tuple(broken(text, found) for text in block.reasoning)
        if not block.calls and texts == block.texts and thoughts == block.reasoning:
            return block
        calls = tuple(map(called, block.calls))
        for call in calls:
            found.extend(pattern.findall(call.written))
        return replace(block, texts=texts, reasoning=thoughts, calls=calls)

    try:
        blocks = tuple(map(written, draft.blocks))
        tools = tuple(map(defined, draft.tools or ()))
        system = tuple(broken(text, in_context) for text in draft.system)
    except KeyError:
        return Problem("nfc", "conversation", "two keys of an object become equal in NFC", 0)
    for call in calls_in(blocks):
        if match := pattern.search(call.name):
            return Problem("control_tokens", "conversation", f"{match[0]} in a tool's name", 0)
    tokens = in_context + in_trained
    refused = {"reject": tokens, "context": in_trained}.get(options.control_tokens)
    if refused:
        names = ", ".join(dict.fromkeys(refused))
        where = "logged text" if options.control_tokens == "reject" else "trained text"
        return Problem("control_tokens", "conversation", f"{where} holds {names}"[:200], 0)
    counts["control_tokens"] += len(tokens)
    return replace(draft, blocks=blocks, system=system, tools=tools).counting(**counts)
