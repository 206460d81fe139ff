"""Narrowing by a path: what lacks or has another type on the way is an empty value."""

from __future__ import annotations

import pytest

from builder.readers.toolkit import as_dict, as_dicts, as_list, as_str

ROW = {"message": {"role": "user", "parts": [{"text": "a"}, 7], "count": 3}}


def test_a_path_leads_to_the_value() -> None:
    assert as_str(ROW, "message", "role") == "user"
    assert as_dict(ROW, "message") is ROW["message"]
    assert as_list(ROW, "message", "parts") == [{"text": "a"}, 7]
    assert as_dicts(ROW, "message", "parts") == [{"text": "a"}, {}]


@pytest.mark.parametrize(
    "path",
    [("lacks",), ("lacks", "role"), ("message", "lacks"), ("message", "count"),
     ("message", "role", "lacks"), ("message", "parts", "text")],
)  # fmt: skip
def test_another_type_on_the_way_is_an_empty_value(path: tuple[str, ...]) -> None:
    for value in (ROW, None, "message", [ROW]):
        assert as_str(value, *path) == ""
        assert as_dict(value, *path) == {}
        assert as_dicts(value, *path) == []
    assert as_list(ROW, *path) == []
