"""Pairing of results and calls, against the rule in its simplest form: one result at a time."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from builder.conversation import Text, ToolResult
from builder.normalize.calls import pair
from builder.normalize.draft import Block, Draft, DraftCall
from builder.normalize.options import NormalizeOptions

IDS = st.sampled_from([None, "", "a", "b"])
NAMES = ["f", "g"]
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), IDS), max_size=5)
RESULTS = st.lists(st.tuples(st.sampled_from([None, None, *NAMES, "h"]), IDS), max_size=6)


def text(calls, results):
    """Returns (answer of each call, orphans): by id, then by name, then by order."""
    answers = {}

    def give(number, fits):
        for at, call in enumerate(calls):
            if at not in answers and fits(call):
                answers[at] = str(number)
                return True
        return False

    def has_id(result):
        return lambda call: call[1] is not None and call[1] == result[1]

    def is_open_to(result):
        return lambda call: call[1] is None or result[1] is None

    def has_name(result):
        return lambda call: is_open_to(result)(call) and call[0] == result[0]

    later = [(at, it) for at, it in enumerate(results) if not give(at, has_id(it))]
    orphans = 0
    for at, result in later:
        named = give(at, has_name(result))
        orphans += not named and not (result[0] is None and give(at, is_open_to(result)))
    reordered = list(answers) != sorted(answers)
    return [answers.get(at) for at in range(len(calls))], orphans, reordered


@given(CALLS, RESULTS)
def test_results_go_to_calls_by_id_then_name_then_order(calls, results):
    block = Block(
        "assistant",
        calls=tuple(DraftCall(at, name, {}, it) for at, (name, it) in enumerate(calls)),
        results=tuple(
            ToolResult((Text(str(at)),), call_id=it, name=name)
            for at, (name, it) in enumerate(results)
        ),
    )
    draft = pair(Draft((block,)), NormalizeOptions())
    counts = Counter(draft.changes)
    found = [call.answer for call in draft.blocks[0].calls]
    reported = found, counts["orphan_result"], bool(counts["results_reordered"])
    assert reported == text(calls, results)
