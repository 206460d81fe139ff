"""Remedies for turns that do not match inference: each one that is offered raises the match."""

import functools
import re

import pytest
from support.places import DATA
from support.runs.builds import build
from support.templates.published import FAMILY, SIBLINGS, XML, text_of
from support.templates.targets import small_tokenizer_folder

from builder.audit.counts import count_dataset
from builder.output.manifest import Manifest
from builder.report.advice import judge
from builder.verify.options import mode_named

KNOWN = [name for name in {**FAMILY, **XML, **SIBLINGS} if not name.startswith("Granite")]
"""Granite's turn markers are not in the small tokenizer."""

LOGS = (DATA / "claude-code", DATA / "openai-chat")
MATCHING = re.compile(r"`(?:--for (\S+Instruct\S+)|(verify\.mode|normalize\.unit): (\S+))`")


@pytest.fixture(scope="module")
def matched(tmp_path_factory):
    """Builds for a known template, with settings; each build is made once.

    Returns the turns that match, all turns, and the advice about the others.
    """

    @functools.cache
    def of(name, *options):
        scratch = tmp_path_factory.mktemp("remedy")
        tokenizer = small_tokenizer_folder(scratch / "tokenizer", chat_template=text_of(name))
        more = ("--workers", "1", "--tokenizer", tokenizer)
        changed = (word for option in options for word in ("--set", option))
        assert build(scratch / "out", *more, *changed, inputs=LOGS) == 0
        manifest, surveyed = Manifest.of(scratch / "out"), count_dataset(str(scratch / "out"))
        advised = [item for item in judge(surveyed, manifest, None)[1] if "match" in item.finding]
        return surveyed.parity[mode_named(manifest.mode)], surveyed.turns, advised

    return of


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("normalize.reasoning=keep",)], ids=["", "keep"])
@pytest.mark.parametrize("name", KNOWN)
def test_an_offered_remedy_raises_the_match(name, options, matched):
    before, turns, advised = matched(name, *options)
    assert bool(advised) == (before < turns)
    for remedy in advised[0].remedies if advised else ():
        model, option, value = MATCHING.search(remedy.text).groups()
        changed = () if model else (f"{option}={value}",)
        after, _, _ = matched("Qwen3 Instruct-2507" if model else name, *options, *changed)
        assert after > before, remedy.text
