"""MessagePack: what has no equivalent in JSON, and that no bytes are harmful."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.jsonio import depth
from builder.readers.traces.langchain import MAX_DEPTH, MsgpackFault, unpack


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x07", 7),
        (b"\xcf" + b"\xff" * 8, 2**64 - 1),
        (b"\x92\x01\xa1a", [1, "a"]),
        (b"\x82\xa1a\x01\x05\x02", {"a": 1, "5": 2}),
        (b"\xc4\x03abc", {"__class__": "bytes", "size": 3}),
        # extensions: a constructor with one argument, a model of fields, one of another kind
        (b"\xc7\x06\x00\x93\xa1m\xa1C\x09", 9),
        (b"\xc7\x0a\x05\x94\xa1m\xa1C\x81\xa1x\x01\xc0", {"x": 1, "__class__": "C"}),
        (b"\xd4\x63\x00", {"__class__": "extension 99", "size": 1}),
    ],
)
def test_values(data, value):
    assert unpack(data) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\xa5hi",
        b"\x01\x02",
        b"\x91" * (MAX_DEPTH + 2) + b"\x01",
        b"\xcb\x7f\xf0" + b"\x00" * 6,
        b"\xd4\x05\x00",
        b"\xdd\xff\xff\xff\xff",
    ],
)
def test_faults(data):
    with pytest.raises(MsgpackFault):
        unpack(data)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_value_or_a_fault(data):
    try:
        value = unpack(data)
    except MsgpackFault:
        return
    assert depth(value) <= 2 * MAX_DEPTH
