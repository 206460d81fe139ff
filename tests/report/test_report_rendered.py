"""A rendering in the report: cut between tokens, and not tokenised if it is long."""

import re

import pytest
from support.pages.reports import plain

from builder.report.samples import Rendered, encode, rendered_html, tokens_html
from builder.report.turns import Limits


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


def test_a_long_text_is_not_tokenised(verifier):
    text = "<|im_start|>user\n" + "word " * 30_000
    assert encode(text, [], verifier.target, count=7).count == 7
    assert "No token ids" in tokens_html(encode(text, [], verifier.target, count=7), Limits())
    short = encode(text[:50], [(20, 30)], verifier.target)
    assert short.tokens[0][-1] == (0, 12)
    assert short.control == ((0, 12),)
