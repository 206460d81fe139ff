"""A rendering in the report: cut between tokens, and only the displayed part is tokenised."""

import re

import pytest
from support.pages.reports import plain

from builder.report import rendered
from builder.report.rendered import Limits, Rendered, encode, rendered_html, tokens_html


@pytest.mark.parametrize("limit", range(30, 60))
def test_a_cut_never_splits_a_control_token(limit):
    text = "<|im_start|>user\n" + "word " * 8 + "<|im_end|>\n" + "<|im_start|>x<|im_end|>"
    control = tuple(match.span() for match in re.finditer(r"<\|im_\w+\|>", text))
    visible = rendered_html(Rendered(text, (), control), Limits(other=limit))
    outside = re.sub("<kbd>.*?</kbd>", "", visible)
    assert "|" not in outside
    assert "im_" not in outside
    left = int(re.search(r"… (\d+) characters", visible)[1])
    kept = re.sub("<i.*?</i>", "", visible)
    assert len(plain(kept)) + left == len(text)


@pytest.mark.parametrize("tokens", [3, 10, 400, 4000])
def test_tokenising_only_the_displayed_part_gives_the_same_tokens(verifier, tokens):
    text = "".join(
        f"<|im_start|>{role}\nword{number} über 😀 {'x ' * number}<|im_end|>\n"
        for number, role in enumerate(["system", "user", "assistant"] * 8)
    )
    control = [match.span() for match in re.finditer(r"<\|im_\w+\|>", text)]
    limits = Limits(tokens=tokens)
    whole = encode(text, [(20, 30)], verifier.target, limits)
    ends = encode(text, [(20, 30)], verifier.target, limits, control, whole.count)
    assert tokens_html(ends, limits) == tokens_html(whole, limits)
    assert (len(ends.tokens) < whole.count) is (tokens < whole.count - 100)
    for lie in (whole.count + 1, 5, 0) if tokens >= whole.count else (2, 0):
        assert encode(text, [(20, 30)], verifier.target, limits, control, lie) == whole


def test_a_text_without_boundaries_is_not_tokenised(verifier, monkeypatch):
    control = [(0, 12), (500, 512)]
    text = "<|im_start|>" + "x" * 488 + "<|im_start|>" + "y"
    count = encode(text, [], verifier.target, Limits()).count
    assert encode(text, [], verifier.target, Limits(), control, count).count == count
    monkeypatch.setattr(rendered, "MAX_ENCODED", 100)
    found = encode(text, [], verifier.target, Limits(), control, count)
    assert (found.tokens, found.count, found.control) == ((), 0, tuple(control))
