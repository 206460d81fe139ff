"""Steps on content: thoughts, characters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from builder.conversation import Json
from builder.jsonio import dumps
from builder.normalize.draft import Block, Draft, DraftCall, calls_in
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem
from builder.qwen3.style import Thoughts
from builder.text import are_plain, break_tokens, clean, map_strings, token_pattern


def reasoning(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Drops thoughts, or keeps them where the template shows them.

    Most show those after the last user turn (`last_query_index` of the template); some
    show all, some none. In units other than the conversation each example has its own last query,
    so `builder.normalize.units` drops the hidden thoughts.
    """
    has = [any(text.strip() for text in block.reasoning) for block in draft.blocks]
    query = max(at for at, block in enumerate(draft.blocks) if block.role == "user")
    shows = options.style.thoughts.has_blocks
    every = options.style.thoughts is Thoughts.every
    blocks = []
    dropped = 0
    for at, block in enumerate(draft.blocks):
        is_visible = shows and (at > query or every or options.unit != "conversation")
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

    def broken(text: str, markers: list[str]) -> str:
        text = cleaned(text)
        broken_text, n = break_tokens(text, pattern)
        if n:
            markers.extend(pattern.findall(text))
        return broken_text

    def defined(tool: Json) -> Json:
        text = dumps(tool) if are_plain(options.added_tokens) else ""
        same = text and text.isascii() and not pattern.search(text)
        return tool if same else map_strings(tool, partial(broken, markers=in_context))

    def called(call: DraftCall) -> DraftCall:
        name, arguments, text = cleaned(call.name), call.arguments, dumps(call.arguments)
        if not text.isascii():
            arguments = map_strings(arguments, cleaned)
            text = dumps(arguments)
        answer = None if call.answer is None else broken(call.answer, in_context)
        return replace(call, name=name, arguments=arguments, answer=answer, written=text)

    def written(block: Block) -> Block:
        is_target = block.role == "assistant" and block.untrained is None
        markers = in_trained if is_target else in_context
        texts = tuple(broken(text, markers) for text in block.texts)
        thoughts = tuple(broken(text, markers) for text in block.reasoning)
        if not block.calls and texts == block.texts and thoughts == block.reasoning:
            return block
        calls = tuple(map(called, block.calls))
        for call in calls:
            markers.extend(pattern.findall(call.written))
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
