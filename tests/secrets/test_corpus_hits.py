"""Precision on real logs: each hit in the corpus was reviewed once and is listed by digest."""

import sys

import pytest
from support.places import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import corpus_hits

CORPUS = ROOT.parent / "shared" / "corpus"


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real logs is not on this machine")
def test_every_hit_on_real_logs_was_reviewed():
    known = corpus_hits.listed()
    assert set(known.values()) <= {"true", "false"}
    found = {digest: (name, len(around)) for digest, name, around in corpus_hits.hits(CORPUS)}
    unseen = {digest: place for digest, place in found.items() if digest not in known}
    assert not unseen, "review them: scripts/corpus_hits.py FOLDER --show"
    assert len(found) >= 0.98 * len(known), "secrets that used to be found are missed"
    false = sum(known[digest] == "false" for digest in found)
    assert false <= 0.02 * len(found)
    agents = [name for name, _ in found.values() if name.startswith(("claude-code", "codex"))]
    assert agents == [], "sessions over code, in which no identifier may be replaced"
