"""Takes results apart that a tool turn wraps in objects with the names of their tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from builder.conversation import Data, Json, Text, ToolResult
from builder.jsonio import JsonFault
from builder.readers.toolkit import literals
from builder.readers.toolkit.narrow import as_dict, as_str


def results_in_text(
    text: str,
    called: Sequence[str],
    changes: Counter[str],
    wraps: Callable[[dict[str, Json]], bool],
    key: str,
) -> list[ToolResult]:
    """Returns the results in a text that is an object which wraps one, or a list of these.

    A tool's own output may look like that: `wraps` states whether an object wraps a result, which
    is its value at `key`, and there may not be more objects than calls. `called` are their names.
    Otherwise the text is the result. `changes` counts each that was taken out (`result_unwrapped`).
    """
    trial: Counter[str] = Counter()
    try:
        values = literals.values(text, trial) if text.lstrip()[:1] in ("{", "[") else []
    except JsonFault:
        values = []
    listed = [item for one in values for item in (one if isinstance(one, list) else [one])]
    wrappers = [as_dict(item) for item in listed]
    if not 0 < len(wrappers) <= len(called) or not all(map(wraps, wrappers)):
        return [ToolResult((Text(text),))]
    changes.update(trial)
    changes["result_unwrapped"] += len(wrappers)
    return [
        ToolResult(
            (Text(inner) if isinstance(inner := item[key], str) else Data(inner),),
            name=name if (name := as_str(item.get("name"))) in called else None,
        )
        for item in wrappers
    ]
