"""Steps on calls: their results, their arguments (also those padded by Arrow), parallel calls."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from builder.conversation import Data, Json, Media, Text, ToolResult, Unparsed
from builder.jsonio import loads_text
from builder.normalize.draft import Block, Draft, DraftCall, calls_in, join, part_text
from builder.normalize.options import NormalizeOptions, SharedTools
from builder.normalize.tools import convert, tool_name
from builder.problem import Problem
from builder.qwen3.calls import breaks_json
from builder.readers.toolkit.comparison import has_no_arguments
from builder.readers.toolkit.narrow import as_dict, as_list

# -- removes the nulls with which Arrow pads the structs of a column -------------------------------

_VALUES = frozenset({"default", "const", "example"})
"""Keywords of JSON Schema whose value may be null."""


def is_padded(tools: Json) -> bool:
    """Returns whether definitions have a null where only a schema, a list or a name can be."""
    if isinstance(tools, list):
        return any(map(is_padded, tools))
    if not isinstance(tools, dict):
        return False
    properties = tools.get("properties")
    if isinstance(properties, dict) and None in properties.values():
        return True
    is_schema = not isinstance(tools.get("name"), str)  # Hermes has `required: null` beside it
    if is_schema and any(tools.get(key, "") is None for key in _NEVER_NULL):
        return True
    return any(is_padded(item) for item in tools.values() if item.__class__ in _NESTED)


_NESTED = (dict, list)
_NEVER_NULL = ("type", "properties", "required", "items", "enum", "anyOf", "oneOf", "allOf")


def _unpadded_tools(tools: Json) -> Json:
    """Returns definitions without nulls, except those that are a value of a keyword."""
    if isinstance(tools, list):
        return [_unpadded_tools(item) for item in tools]
    if not isinstance(tools, dict):
        return tools
    return {
        key: item if key in _VALUES else _unpadded_tools(item)
        for key, item in tools.items()
        if item is not None or key in _VALUES
    }


def _has_null(value: Json) -> bool:
    if isinstance(value, dict):
        return any(item is None or _has_null(item) for item in value.values())
    return isinstance(value, list) and any(map(_has_null, value))


def schemas(tools: Iterable[Json]) -> dict[str, Json]:
    """Returns {name of the tool: schema of its arguments}."""
    definitions = convert(tools, Counter())
    return {tool_name(tool): as_dict(tool["function"]).get("parameters") for tool in definitions}


def declares(value: Mapping[str, Json], schema: Json) -> bool:
    """Returns whether a schema has a property for each null of an object."""
    known = as_dict(schema, "properties")
    return not known or all(item is not None or key in known for key, item in value.items())


def unpadded(value: Json, schema: Json, counts: Counter[str]) -> Json:
    """Returns arguments without the nulls that their schema does not allow (`null_padding`)."""
    if isinstance(value, list):
        return [unpadded(item, as_dict(schema).get("items"), counts) for item in value]
    if not isinstance(value, dict):
        return value
    properties, wanted = as_dict(schema, "properties"), as_list(schema, "required")
    kept: dict[str, Json] = {}
    for key, item in value.items():
        if item is None and key not in wanted and not _allows_null(properties.get(key)):
            counts["null_padding"] += 1
        else:
            kept[key] = unpadded(item, properties.get(key), counts)
    return kept


def _allows_null(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    kind, listed = schema.get("type"), schema.get("enum")
    if kind == "null" or (isinstance(kind, list) and "null" in kind) or schema.get("nullable"):
        return True
    if isinstance(listed, list) and None in listed and kind is None:
        return True
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list):
            return any(map(_allows_null, options))
    return kind is None and listed is None and "const" not in schema and "$ref" not in schema


def pair(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Assigns the results to the calls of their turn: by id, then by name, then by order.

    Ids may repeat (the first unanswered call gets the result) or be missing. A result without a
    call in its turn is an `orphan_result`; results out of order are `results_reordered`.
    """
    counts: Counter[str] = Counter()
    keeps = options.harness == "keep"
    blocks = [
        _paired(block, counts, harness=keeps) if block.results else block for block in draft.blocks
    ]
    return draft.having(blocks, counts)


def join_answers(blocks: Sequence[Block], results: Sequence[ToolResult]) -> list[Block]:
    """Joins consecutive assistant blocks without ids of turns where they are one answer.

    Programs log the text and the calls of an answer one by one. A block that follows calls belongs
    to their answer only if each call of both has one of the `results`, which follow the blocks.
    Otherwise a result is missing, and the block is another answer.
    """
    joined = list(blocks[:1])
    for block in blocks[1:]:
        whole = join(joined[-1], block)
        answered = _paired(replace(whole, results=list(results)), Counter(), harness=True)
        if not joined[-1].calls or all(call.answer is not None for call in answered.calls):
            joined[-1] = whole
        else:
            joined.append(block)
    return joined


def _paired(block: Block, counts: Counter[str], *, harness: bool) -> Block:
    given: dict[int, ToolResult] = {}  # {position of the call: its result}, in order of the results
    by_id: dict[str, deque[int]] = {}
    for at, call in enumerate(block.calls):
        if call.id is not None:
            by_id.setdefault(call.id, deque()).append(at)
    later = []
    for result in block.results:
        named = by_id.get(result.call_id) if result.call_id is not None else None
        if named:
            given[named.popleft()] = result
        else:
            later.append(result)
    unanswered = [at for at in range(len(block.calls)) if at not in given]
    without_id = [at for at in unanswered if block.calls[at].id is None]
    for result in later:
        # An id that names no call of the turn can only belong to a call without one.
        fitting = unanswered if result.call_id is None else without_id
        name = _plain(result.name)
        first = next((at for at in fitting if name in (None, _plain(block.calls[at].name))), None)
        if first is None:
            counts["orphan_result"] += 1
            continue
        given[first] = result
        unanswered.remove(first)
        if block.calls[first].id is None:
            without_id.remove(first)
    if list(given) != sorted(given):
        counts["results_reordered"] += 1
    calls = tuple(
        _answered(call, given[at], counts, harness=harness) if at in given else call
        for at, call in enumerate(block.calls)
    )
    return replace(block, calls=calls, results=[])


def _plain(name: str | None) -> str | None:
    """Returns a tool's name without harmony's namespace, which results have and calls may lack."""
    return None if name is None else name.removeprefix("functions.")


def _answered(
    call: DraftCall, result: ToolResult, counts: Counter[str], *, harness: bool
) -> DraftCall:
    failure = "error" if result.is_error else None
    if result.is_denied:  # logs often flag a refused or interrupted call as an error as well
        failure = "denied"
    elif result.is_interrupted:
        failure = "interrupted"
    return replace(
        call,
        answer=_result_text(result, counts, harness=harness),
        failure=failure,
        is_flagged=failure is not None or result.is_error is not None,
    )


def _result_text(result: ToolResult, counts: Counter[str], *, harness: bool) -> str:
    """Returns the text of a tool response: one line or more for each part, values as JSON.

    `harness`: includes text that the agent program inserted.
    """
    known = [part for part in result.content if not isinstance(part, Unparsed)]
    parts = [part for part in known if harness or not (isinstance(part, Text) and part.harness)]
    counts["harness_text"] += len(known) - len(parts)
    for part in parts:
        counts["media"] += isinstance(part, Media)
        counts["json_result"] += isinstance(part, Data)
    if len(parts) > 1:
        counts["result_joined"] += 1
    return "\n".join(part_text(part) for part in parts)


def result_text(result: ToolResult) -> str:
    """Returns the whole text of a result, as `pair` gives it to its call."""
    return _result_text(result, Counter(), harness=True)


def arguments(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Decodes the arguments; the step `cut` handles those that are not a JSON object.

    "" and null become {} (`empty_arguments`), unless the tool requires an argument: then the log
    has lost them, and they stay. Doubly encoded ones are decoded (`double_encoded`). The padding of
    Arrow is removed from definitions and arguments (`null_padding`).
    """
    draft = _unpadded(draft, options)
    if not any(block.calls for block in draft.blocks):
        return draft
    counts: Counter[str] = Counter()
    empty = {call.name for call in calls_in(draft.blocks) if has_no_arguments(call.arguments)}
    demanding = _requiring(empty, draft, options) if empty else frozenset()

    def decoded_call(call: DraftCall) -> DraftCall:
        if call.name in demanding and has_no_arguments(call.arguments):
            return call
        value = decoded(call.arguments, counts)
        return call if value is call.arguments else replace(call, arguments=value)

    blocks = tuple(block.with_calls(decoded_call) for block in draft.blocks)
    called = tuple(call for call in calls_in(blocks) if call_fault(call) is None)
    return replace(draft, blocks=blocks, called=called).counting(**counts)


def _unpadded(draft: Draft, options: NormalizeOptions) -> Draft:
    """Removes nulls that only fill the structs of a table, if there is a sign that some do.

    Signs: the rows are from a table, a property has no schema, or a null has no property. Arguments
    that the log has as JSON text are the model's own.
    """
    counts: Counter[str] = Counter()
    tools = draft.tools
    fills = draft.padded or (tools is not None and is_padded(list(tools)))
    if fills and tools is not None:
        cleaned = tuple(map(_unpadded_tools, tools))
        if cleaned != tools:
            counts["null_padding"] += 1
            tools = cleaned
    calls = [call for call in calls_in(draft.blocks) if _has_null(call.arguments)]
    if calls:
        listed = options.supplied_tools if tools is None else tools
        known = schemas(listed or ())
        fills = fills or not all(
            declares(call.arguments, known.get(call.name))
            for call in calls
            if isinstance(call.arguments, dict)
        )
    if not fills:
        return draft
    nulls = {call.ordinal for call in calls}

    def cleaned_call(call: DraftCall) -> DraftCall:
        if call.ordinal not in nulls:
            return call
        return replace(call, arguments=unpadded(call.arguments, known.get(call.name), counts))

    blocks = [block.with_calls(cleaned_call) for block in draft.blocks]
    return replace(draft, tools=tools).having(blocks, counts)


def _requiring(names: Collection[str], draft: Draft, options: NormalizeOptions) -> frozenset[str]:
    """Returns those of the tools that no call without arguments fits, by their definitions."""
    shared = options.shared_tools or SharedTools()
    elsewhere = shared.elsewhere(draft.version)
    listed = draft.tools if draft.tools is not None else options.supplied_tools
    known = schemas([elsewhere[name] for name in names if name in elsewhere])
    known |= schemas(listed or ())
    return frozenset(name for name in names if as_list(known.get(name), "required"))


def decoded(arguments: Json, counts: Counter[str]) -> Json:
    """Returns the object that logged arguments encode, else the arguments. Counts changes."""
    if has_no_arguments(arguments):
        counts["empty_arguments"] += 1
        return {}
    value = arguments
    for _ in range(2):
        if isinstance(value, str):
            counts["double_encoded"] += value is not arguments
            value = loads_text(value)
    return value if isinstance(value, dict) else arguments


def call_fault(call: DraftCall) -> str | None:
    """Returns the code of the fault that prevents writing a call, or None."""
    if not isinstance(call.arguments, dict):
        return "bad_arguments"
    if not call.name or breaks_json(call.name):
        return "bad_name"
    return None


def parallel(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Keeps several calls in one turn, splits them into turns of one call each, or rejects."""
    if options.parallel_calls == "keep" or all(len(block.calls) < 2 for block in draft.blocks):
        return draft
    if options.parallel_calls == "reject":
        return Problem("parallel_calls", "conversation", "several calls in one turn", records=0)
    blocks: list[Block] = []
    for block in draft.blocks:
        if len(block.calls) < 2:
            blocks.append(block)
            continue
        draft = draft.counting(parallel_split=1)
        blocks.append(replace(block, calls=block.calls[:1]))
        if block.calls[0].answer is None:  # the last turn: a server would stop after this call
            draft = draft.dropping(block.calls[1:], "parallel_calls")
            continue
        alone = replace(block, texts=(), reasoning=(), text_last=0)
        blocks += [replace(alone, calls=(call,)) for call in block.calls[1:]]
    return draft.having(blocks)
