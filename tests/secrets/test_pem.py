"""Private keys in PEM that are shown in part, and tokens that go on in the next line."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.conversations.strategies import MANY
from support.sensitive.found import check_lines, found
from support.sensitive.planted import GITHUB, PEM, PEM_LINES, invented

from builder.secrets import pem
from builder.secrets.secrets import find_secrets

BEGIN, END = PEM.split("\n")[0], PEM.split("\n")[-1]
TAIL = "\n".join([*PEM_LINES[2:], END])
OTHER_TAIL = TAIL.replace(PEM_LINES[2], invented(64, seed=9))
REST = invented(40)


def hidden(text, *parts):
    """Returns whether each of the parts is within a hit."""
    hits = find_secrets(text)
    starts = [text.index(part) for part in parts]
    return all(
        any(hit.start <= at and at + len(part) <= hit.end for hit in hits)
        for at, part in zip(starts, parts, strict=True)
    )


SHOWN = {
    "as it is": TAIL,
    "in a diff": "\n".join(f"-{line}" for line in TAIL.split("\n")),
    "numbered": "\n".join(f"{n:6}\t{line}" for n, line in enumerate(TAIL.split("\n"), 20)),
    "in JSON": json.dumps(TAIL),
    "with carriage returns": TAIL.replace("\n", "\r\n"),
    "after a whole key": f"{PEM}\n$ tail key.pem\n{OTHER_TAIL}",
}


@pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN)
def test_the_end_of_a_key(shown):
    assert hidden(f"$ tail -4 tls.key\n{shown}\n", PEM_LINES[3], PEM_LINES[4])


def test_text_before_the_end_of_a_key_is_kept():
    text = f"$ tail -4 tls.key\n{TAIL}\n"
    assert found(text) == [TAIL]
    assert found(f"for line in lines:\n    if line == '{END}':\n        break\n") == []


PARTS = (
    BEGIN, END, "\n", "\n", "-", " ", "\\n", "12\t", *PEM_LINES[:3], "print(x)",
    END.replace("-----", ""),
)  # fmt: skip


@given(parts=st.lists(st.sampled_from(PARTS), max_size=12))
@example(parts=[BEGIN, "\n", PEM_LINES[0], "\n", END, "\n", PEM_LINES[1], "\n", END])
@example(parts=[PEM_LINES[0], "\n", END, BEGIN, "\n", PEM_LINES[1]])
@MANY
def test_lines_are_enough(parts):
    check_lines(pem.find_keys, pem.LINES, "".join(parts))


@pytest.mark.parametrize("wrap", ["\n", "\r\n", "\\\n    ", "\\n", "\n+"])
def test_a_token_that_goes_on_in_the_next_line(wrap):
    text = f'token: "{GITHUB}{wrap}{REST}"\nlog_level: info'
    assert found(text) == [f"{GITHUB}{wrap}{REST}"]


@pytest.mark.parametrize("following", [
    "1ae49aa1511393e0a3107956710eda77ca49d9b3", "InternalServerErrorHandlerFactory", "a short line",
])  # fmt: skip
def test_other_lines_after_a_token_are_kept(following):
    assert found(f"export T={GITHUB}\n{following}\n") == [GITHUB]
