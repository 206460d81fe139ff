"""The secret rules against those of two other scanners: how many of their secrets are found.

The texts are drawn from the scanners' own patterns (scripts/audit_vectors.py); most of those
missed are unrealistic, such as ten blank lines between a name and its value.
"""

import sys

import pytest
from support.places import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import audit_vectors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scanner", "package", "least"),
    [("kingfisher", "kingfisher_sdk", 0.9), ("detect-secrets", "detect_secrets", 0.55)],
)
def test_recall_on_the_rules_of(scanner, package, least):
    pytest.importorskip(package, reason="the extra `scanners` is not installed")
    total, missed = audit_vectors.measure(scanner, 2)
    assert total.total() >= {"kingfisher": 700, "detect-secrets": 60}[scanner]
    assert 1 - missed.total() / total.total() >= least, missed.most_common(20)
