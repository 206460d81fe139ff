"""Remedies for turns that do not match inference: each one that is offered raises the match."""

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

MATCHING = re.compile(r"`(?:--for (\S+Instruct\S+)|(verify\.mode|normalize\.unit): (\S+))`")


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """Returns the folder of a small tokenizer with a known template."""

    def of(name):
        folder = scratch / re.sub(r"\W", "_", name)
        return str(folder) if folder.exists() else small_tokenizer_folder(
            folder, chat_template=text_of(name)
        )  # fmt: skip

    scratch = tmp_path_factory.mktemp("tokenizers")
    return of


def matched(out, tokenizer, *options):
    """Builds; returns the turns that match, all turns, and the advice about the others."""
    inputs = (DATA / "claude-code", DATA / "openai-chat")
    more = ("--workers", "1", "--tokenizer", tokenizer, *options)
    assert build(out, *more, inputs=inputs) == 0
    manifest, surveyed = Manifest.of(out), count_dataset(str(out))
    advised = [item for item in judge(surveyed, manifest, None)[1] if "match" in item.finding]
    return surveyed.parity[mode_named(manifest.mode)], surveyed.turns, advised


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--set", "normalize.reasoning=keep")], ids=["", "keep"])
@pytest.mark.parametrize("name", KNOWN)
def test_an_offered_remedy_raises_the_match(name, options, tokenizers, tmp_path):
    before, turns, advised = matched(tmp_path / "out", tokenizers(name), *options)
    assert bool(advised) == (before < turns)
    for number, remedy in enumerate(advised[0].remedies if advised else ()):
        model, option, value = MATCHING.search(remedy.text).groups()
        changed = () if model else ("--set", f"{option}={value}")
        tokenizer = tokenizers("Qwen3 Instruct-2507" if model else name)
        after, _, _ = matched(tmp_path / str(number), tokenizer, *options, *changed)
        assert after > before, remedy.text
