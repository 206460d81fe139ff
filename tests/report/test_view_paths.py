"""Sources in the list of samples: project and date."""

import pytest

from builder.view.viewer import brief_source

UUID = "9d7a9d52-7eb4-427d-847d-ee5451884f3d"


@pytest.mark.parametrize(
    ("source", "brief"),
    [
        ("a/b/log.jsonl", "b/log"),
        (f"-home-ada-shop/{UUID}.jsonl", "home-ada-shop 9d7a9d52"),
        (f"sessions/2026/11/20/rollout-2026-11-20T23-03-44-{UUID}.jsonl", "2026-11-20"),
        (f"shop/Agent__2026-01-21-{UUID}.jsonl", "shop/Agent 2026-01-21"),
        ("log.jsonl", "log"),
        ("", ""),
    ],
)
def test_short_forms(source, brief):
    assert brief_source(source) == brief
