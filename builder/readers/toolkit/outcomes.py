"""How a run ended, as its log says: `Conversation.outcome`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from builder.conversation import Json

OUTCOME_KEYS = (
    "benchmark",
    "error",
    "exit_status",
    "feedback",
    "labels",
    "resolved",
    "reward",
    "score",
)
"""Keys of an outcome that logs use themselves."""

_SWE_BENCH_IMAGE = re.compile(r"(?:docker\.io/)?(?:swebench/)?sweb\.eval\.")


def logged_outcome(*places: Mapping[str, Json], **known: Json) -> dict[str, Json] | None:
    """Returns an outcome: `known`, and what the places log under the names of an outcome's keys.

    The first place that has a key counts, `known` before all. Values that say nothing (None, "",
    an empty list or object) are left out; None if nothing remains.
    """
    found = dict(known)
    for key in OUTCOME_KEYS:
        for place in places:
            if not has_content(found.get(key)) and key in place:
                found[key] = place[key]
    return {key: value for key, value in sorted(found.items()) if has_content(value)} or None


def benchmark_of_image(image: Json) -> str | None:
    """Returns "SWE-bench" for a container image of its tasks, else None.

    The images are `swebench/sweb.eval.ARCH.INSTANCE`, those built locally have no namespace
    (swebench/harness/test_spec); other training sets use the name under their own namespaces.
    """
    is_swe_bench = isinstance(image, str) and _SWE_BENCH_IMAGE.match(image)
    return "SWE-bench" if is_swe_bench else None


def has_content(value: Json) -> bool:
    """Returns whether a value carries information: False and 0 do."""
    return value is not None and value not in ("", [], {})
