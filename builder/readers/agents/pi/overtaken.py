"""Puts a prompt that was sent while the model worked before the answer that it got.

Early versions answered such a prompt at once, beside the turn that went on: its remaining answers
did not see the prompt, though they stand after it. The time in an answer is that of its request.
"""

from __future__ import annotations

from collections.abc import Sequence

from builder.conversation import Json
from builder.readers.agents.pi.stretches import Node
from builder.readers.toolkit.narrow import as_dict


def in_order(path: Sequence[Node]) -> tuple[list[Node], frozenset[str]]:
    """Returns the path with such prompts in the place where their answers begin, and their ids.

    Answers from there on were sent what precedes them in another order, or not all of it.
    """
    ordered = list(path)
    moved: set[str] = set()
    for node in path:
        if node.role != "user":
            continue
        at = ordered.index(node)
        own = _own_answer(ordered, at)
        if own is not None:
            ordered.insert(own, node)  # before the node there, which is later than `at`
            del ordered[at]
            moved.add(node.id)
    return ordered, frozenset(moved)


def _own_answer(path: Sequence[Node], at: int) -> int | None:
    """Returns where the answer to an overtaken prompt is; None if the prompt was not overtaken.

    The next answer was requested before the prompt, and the prompt's own follows another answer
    that was requested after it.
    """
    asked = _time(path[at])
    last: Node | None = None
    for position in range(at + 1, len(path)):
        node = path[position]
        if node.role == "user":
            return None
        if node.answers:
            requested = _time(node)
            if last is None and requested >= asked:
                return None
            if last is not None and last.answers and asked <= requested < _time(last):
                return position
        if node.role:
            last = node
    return None


def _time(node: Node) -> float:
    """Returns when a message was sent or requested, in milliseconds; 0 if it is not logged."""
    value: Json = as_dict(node.entry.get("message")).get("timestamp")
    return float(value) if isinstance(value, int | float) else 0.0
