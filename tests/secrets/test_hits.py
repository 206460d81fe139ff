"""Texts searched together, and the cache of what was found in them."""

from hypothesis import given
from hypothesis import strategies as st

from builder.secrets import hits
from builder.secrets.hits import SHORT, Hit, Joined, remembering

LONG = "long " * SHORT


def counting():
    """Returns a search for the letter x, and the list of the texts that it was called with."""
    searched = []

    def search(texts):
        searched.extend(texts)
        return [tuple(Hit(at, at + 1, "x") for at, c in enumerate(t) if c == "x") for t in texts]

    return remembering(search), searched


def test_texts_are_searched_once():
    find, searched = counting()
    texts = [LONG, "x", LONG, f"x{LONG}", "x"]
    expected = [(), (Hit(0, 1, "x"),), (), (Hit(0, 1, "x"),), (Hit(0, 1, "x"),)]
    assert find(texts) == expected
    assert searched == [LONG, "x", f"x{LONG}"]
    assert find([*texts, "xx"]) == [*expected, (Hit(0, 1, "x"), Hit(1, 2, "x"))]
    assert searched[3:] == ["xx"]
    assert find([]) == []


def test_the_cache_is_limited_and_may_forget(monkeypatch):
    monkeypatch.setattr(hits, "REMEMBERED", 2)
    find, searched = counting()
    texts = [f"{number}{letter}{LONG}" for letter in "xy" for number in range(5)]
    first = find(texts)
    assert [bool(found) for found in first] == [True] * 5 + [False] * 5
    assert find(texts) == first
    assert searched[10:] == texts[2:], "two were kept"
    find(["x"])
    assert find(["x", *texts[:2]]) == [(Hit(0, 1, "x"),), *first[:2]]
    assert searched[18:] == ["x", *texts[:2]], "the cache was cleared, what it knew was used"
    find(texts[2:4])
    assert searched[21:] == texts[2:4]


@given(st.lists(st.lists(st.text(alphabet="ab\u00e9", max_size=3), max_size=4), min_size=1))
def test_places_in_joined_texts_are_those_in_each(texts):
    written = ["\n".join(lines) for lines in texts]
    joined = Joined(written)
    at = 0
    for number, text in enumerate(written):
        assert [joined.place(at + place) for place in range(len(text) + 1)] == [
            (number, place) for place in range(len(text) + 1)
        ]
        at += len(text) + 1
    assert len(joined.data) == at - 1
