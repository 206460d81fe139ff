"""Makes the front matter of the card, which the Hub and `datasets` read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from builder.audit.result import Audit
from builder.report.html import escape_invisible
from builder.text import shorten

_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
    (1_000_000_000, "100M<n<1B"),
)

_IDS = (
    "apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0"
    " bigcode-openrail-m afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause"
    " bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0"
    " cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0"
    " cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0"
    " cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1"
    " eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc h-research"
    " intel-research lppl-1.3c ms-pl apple-ascl apple-amlr mpl-2.0 odc-by odbl openrail++ osl-3.0"
    " postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr deepfloyd-if-license"
    " fair-noncommercial-research-license llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 gemma"
    " unknown other"
)
LICENSES = frozenset(_IDS.split())
"""The Hub's identifiers of licences (Hub documentation, "Licenses")."""

_ALSO = {
    "apache-2": "apache-2.0",
    "apache2": "apache-2.0",
    "apache2.0": "apache-2.0",
    "apache-license-2.0": "apache-2.0",
    "apache-license-version-2.0": "apache-2.0",
    "the-mit": "mit",
    "expat": "mit",
    "cc0": "cc0-1.0",
    "cc-zero": "cc0-1.0",
    "odc-by-1.0": "odc-by",
    "odbl-1.0": "odbl",
    "pddl-1.0": "pddl",
    "the-unlicense": "unlicense",
    "gplv2": "gpl-2.0",
    "gplv3": "gpl-3.0",
    "agplv3": "agpl-3.0",
    "lgplv3": "lgpl-3.0",
    "bsd-2": "bsd-2-clause",
    "bsd-3": "bsd-3-clause",
    "mpl-2": "mpl-2.0",
}
"""Common and SPDX spellings in the form that `license_id` looks up."""

_CODES = {
    "English": "en",
    "German": "de",
    "French": "fr",
    "Spanish": "es",
    "Portuguese": "pt",
    "Italian": "it",
    "Dutch": "nl",
    "Greek": "el",
    "Han": "zh",
    "Kana": "ja",
    "Hangul": "ko",
    "Hebrew": "he",
    "Thai": "th",
}
"""{name in the audit's table of languages: ISO 639-1 code}; other scripts serve many languages."""

LEAST_SAMPLES = 10
LEAST_SHARE = 0.05


def front_matter(
    name: str,
    samples: int,
    licenses: Sequence[str],
    data_files: Mapping[str, Sequence[str]],
    digest: str,
    audit: Audit | None,
    *,
    weighted: bool = False,
    beside: bool = False,
) -> dict[str, object]:
    """Returns the contents of the front matter. `licenses` are in the wording of the inputs."""
    front: dict[str, object] = {"pretty_name": shorten(escape_invisible(name), 80) or "dataset"}
    front.update(licensing(licenses))
    known = languages(audit)
    if known:
        front["language"] = known
    front["task_categories"] = ["text-generation"]
    front["tags"] = ["tool-calling", "function-calling", "qwen3", "sft", "agent-traces"]
    front["size_categories"] = [next((name for n, name in _SIZES if samples < n), "1B<n<10B")]
    if data_files:
        front.update(loading(data_files, digest, weighted=weighted, beside=beside))
    return front


def loading(
    data_files: Mapping[str, Sequence[str]], digest: str, *, weighted: bool, beside: bool = False
) -> dict[str, object]:
    """Returns the declarations for loaders: files of the first format, and features.

    Without declared features Arrow would infer them, reorder keys and add nulls to definitions.
    `digest` is declared because `datasets` (measured: 5.2) caches a folder by its name and the
    declarations of its card, and would otherwise return the rows of an earlier build. `weighted`:
    some message has a weight; the loader then returns null for messages without one, as it does
    with `beside`: messages may have `reasoning_content`.
    """
    message = [{"name": "role", "dtype": "string"}, {"name": "content", "dtype": "string"}]
    if beside:
        message.append({"name": "reasoning_content", "dtype": "string"})
    if weighted:
        message.append({"name": "weight", "dtype": "int8"})
    kind = next(iter(data_files.values()))[0].partition(".")[2]
    return {
        "configs": [
            {
                "config_name": "default",
                "description": f"sha256 {digest}",
                "data_files": [
                    {"split": split, "path": f"data/{split}-*.{kind}"} for split in data_files
                ],
            }
        ],
        "dataset_info": {
            "features": [{"name": "messages", "list": message}, {"name": "tools", "list": "json"}]
        },
    }


def license_id(name: str) -> str:
    """Returns the Hub's identifier of a licence in any common spelling, or `other`.

    "GPL-3.0-or-later" becomes `gpl-3.0`, the nearest identifier; the text of the card keeps the
    wording of the log.
    """
    key = re.sub(r"[\s_]+", "-", name.strip().lower()).replace("licence", "license")
    if not key:
        return "unknown"
    shorter = re.sub(r"-(?:license|only|or-later)$|\+$", "", key)
    for known in (key, shorter, re.sub(r"-v(?:ersion-)?(?=\d)", "-", shorter)):
        if known in LICENSES:
            return known
        if known in _ALSO:
            return _ALSO[known]
    return "other"


def licensing(licenses: Sequence[str]) -> dict[str, object]:
    """Returns `license` (a list for several), and `license_name` for one that the Hub lacks."""
    ids = sorted({license_id(name) for name in licenses}) or ["unknown"]
    front: dict[str, object] = {"license": ids[0] if len(ids) == 1 else ids}
    names = {_slug(name) for name in licenses if license_id(name) == "other"} - {"", "other"}
    if len(names) == 1:
        front["license_name"] = names.pop()
    return front


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:80]


def languages(audit: Audit | None) -> list[str]:
    """Returns ISO codes of the languages of the first queries, most frequent first.

    Returns none unless the audit determined the language of half of the samples. Each language
    needs LEAST_SAMPLES samples and a share of LEAST_SHARE.
    """
    if audit is None:
        return []
    known = {_CODES[name]: n for name, n in audit.counts.languages.items() if name in _CODES}
    if sum(known.values()) * 2 < audit.samples:
        return []
    least = max(LEAST_SAMPLES, LEAST_SHARE * audit.samples)
    return [key for key in sorted(known, key=lambda key: (-known[key], key)) if known[key] >= least]
