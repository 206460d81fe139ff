"""The selection of samples: a pure function of the table, tested on hand-made tables."""

from dataclasses import replace
from itertools import zip_longest

import pytest

from builder.select.choice import ChoiceOptions, SplitOptions, choose, exact_duplicates
from builder.select.table import (
    DIGEST_BYTES,
    ConversationEntry,
    ConversationRow,
    SampleEntry,
    SampleRow,
)


def digest(text):
    return text.encode().ljust(DIGEST_BYTES, b".")


def row(prefixes, ends=None, *, weight=1.0, session=None, patterns=(), refusals=(), reviews=()):
    """Returns a conversation ("ab": two assistant turns); `ends`: the prefixes that end samples."""
    steps = [prefixes[: at + 1] for at in range(len(prefixes))]
    ends = [prefixes] if ends is None else ends
    samples = tuple(SampleEntry(digest(end), tokens=len(end)) for end in ends)
    entry = ConversationEntry(
        code=None if ends else "no_user",
        samples=samples,
        prefixes=b"".join(map(digest, steps)),
        session=session or prefixes.encode(),
    )
    judged = zip_longest(samples, patterns, refusals, reviews)
    return ConversationRow(
        entry,
        tuple(
            SampleRow(sample, pattern or "", refusal, review)
            for sample, pattern, refusal, review in judged
        ),
        weight=weight,
    )


@pytest.mark.parametrize(
    ("conversations", "duplicates"),
    [
        ("", set()),
        ("a b", set()),
        ("a a", {1}),
        ("a ab abc", {0, 1}),
        ("abc ab a", {1, 2}),
        ("ab ac", set()),
        ("ab abc ab abc", {0, 2, 3}),
    ],
)
def test_the_longest_conversation_is_kept_and_of_equal_ones_the_first(conversations, duplicates):
    table = [row(name) for name in conversations.split()]
    assert exact_duplicates(table, [False] * len(table), in_pieces=False) == duplicates


def test_pieces_that_conversations_share_are_kept_once():
    table = [row("ab", ["a", "ab"]), row("", []), row("ac", ["a", "ac"])]
    assert exact_duplicates(table, [False] * 4, in_pieces=True) == {2}
    assert exact_duplicates(table, [False] * 4, in_pieces=False) == set()


def test_equal_bytes_are_kept_once_whatever_they_come_from():
    """Definitions of another source digest differently, though the samples are the same."""
    one, other, third = row("ab"), row("cd"), row("ef")
    for item, line in ((one, b"x"), (other, b"x"), (third, b"y")):
        same = replace(item.samples[0].entry, line=line)
        object.__setattr__(item.entry, "samples", (same,))
    assert exact_duplicates([one, other, third], [False] * 3, in_pieces=False) == {1}
    assert exact_duplicates([one, other, third], [True, False, False], in_pieces=False) == set()


def test_each_sample_has_a_split_or_a_reason():
    table = [row("a"), row("", []), row("b", weight=0.0), row("a"), row("c"), row("d")]
    choice = choose(table, ChoiceOptions(), lambda chosen: {4: 3})
    assert choice.codes == [None, "weight", "duplicate", None, "near_duplicate"]
    assert choice.splits == ["train", None, None, "train", None]
    assert choice.near == {4: 3}


def test_shares_count_the_remaining_samples_by_the_pattern_of_the_longest():
    table = [
        row("ab", ["a", "ab"], patterns=("direct_answer", "chain")),
        row("c", patterns=("chain",)),
        row("d", patterns=("chain",)),
        row("e", patterns=("direct_answer",)),
        row("e", patterns=("direct_answer",)),
    ]
    shares = {"chain": 0.5, "direct_answer": 0.5}
    codes = choose(table, ChoiceOptions(in_pieces=True, shares=shares)).codes
    assert codes[4:] == [None, "duplicate"]
    assert codes[:4].count(None) == 1
    assert codes[:4].count("mix") == 3


def test_a_session_stays_in_one_split():
    split = SplitOptions(validation=0.3, test=0.3, seed=1)
    names = "abcdefghijklmnop"
    table = [row(name * 2, [name, name * 2], session=b"s%d" % (at % 5)) for at, name in
             enumerate(names)]  # fmt: skip
    choice = choose(table, ChoiceOptions(in_pieces=True, split=split))
    found = {}
    for conversation, start in zip(table, range(0, 2 * len(names), 2), strict=True):
        found.setdefault(conversation.entry.session, set()).update(choice.splits[start : start + 2])
    assert all(len(splits) == 1 for splits in found.values())
    assert len(set().union(*found.values())) > 1
