"""Cline: what its requests leave out of results that the log has whole."""

import pytest

from builder.readers.agents.cline import FileReads, shortened


def entry(query, length):
    return [{"query": query, "result": "x" * length, "success": True}]


@pytest.mark.parametrize(
    ("length", "kept", "mark"), [(8001, 3985, "[truncated 31 chars]"), (48113, 3983, "40147")]
)
def test_a_long_text_loses_its_middle(length, kept, mark):
    text = shortened("a" * (length // 2) + "b" * (length - length // 2))
    assert text.startswith("a" * kept + "\n\n...[")
    assert text.endswith("]...\n\n" + "b" * kept)
    assert mark in text
    assert len(text) in (7999, 8000)
    assert shortened("a" * 8000) == "a" * 8000


@pytest.mark.parametrize(
    ("queries", "length", "replaced"),
    [
        (["a.py"] * 10, 8000, True),  # nine earlier reads of 8,000 characters
        (["a.py"] * 8, 8000, False),
        (["a.py"] * 10, 7000, False),
        ([f"{at}.py" for at in range(10)], 8000, False),
        ([*(f"a.py:{at}-{at + 9}" for at in range(10)), "a.py"], 8000, True),
        ([f"a.py:{at}-EOF" for at in range(10)], 8000, False),
    ],
)
def test_reads_that_later_ones_repeat_are_replaced_if_they_are_long(queries, length, replaced):
    reads = FileReads()
    for at, query in enumerate(queries):
        reads.take(str(at), "read_files", entry(query, length))
    reads.take("other", "run_commands", entry("a.py", length))
    assert reads.are_replaced() is replaced
