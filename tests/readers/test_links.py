"""Laws of trees by the ids of parents: any links, also cycles, lost parents and none at all."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from builder.readers.toolkit.history import Links, upwards

_IDS = st.sampled_from("abcdefg")
_PARENTS = st.dictionaries(_IDS, st.none() | _IDS | st.just("lost"))


@given(_PARENTS)
def test_a_path_goes_from_parent_to_child_and_begins_at_a_root_or_in_a_cycle(
    parents: dict[str, str | None],
) -> None:
    links = Links(parents)
    for leaf in parents:
        path = links.path(leaf)
        assert path[-1] == leaf
        assert len(set(path)) == len(path)
        assert all(parents[child] == above for above, child in pairwise(path))
        above = parents[path[0]]
        assert above is None or above not in parents or above in path


@given(_PARENTS)
def test_leaves_are_the_records_that_no_other_names_in_the_order_of_the_log(
    parents: dict[str, str | None],
) -> None:
    named = set(parents.values())
    assert Links(parents).leaves == [one for one in parents if one not in named]


@given(_PARENTS, _IDS, st.frozensets(_IDS))
def test_a_path_until_some_ids_is_the_end_of_the_whole_path(
    parents: dict[str, str | None], leaf: str, covered: frozenset[str]
) -> None:
    links = Links({**parents, leaf: parents.get(leaf)})
    whole, rest = links.path(leaf), links.path(leaf, until=covered)
    assert whole[len(whole) - len(rest) :] == rest
    assert covered.isdisjoint(rest)
    assert len(rest) == len(whole) or whole[len(whole) - len(rest) - 1] in covered


def test_a_walk_ends_where_a_cycle_closes() -> None:
    assert [*upwards(3, lambda number: (number + 1) % 5)] == [3, 4, 0, 1, 2]
