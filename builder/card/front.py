"""Makes the front matter of the card, which the Hub and `datasets` read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from builder.audit.result import Audit
from builder.conversation import Json
from builder.output.rows import declarations, sample_features
from builder.report.html import escape_invisible
from builder.text import number, shorten

# -- writes Markdown with escaped log text: names of models and tools may be hostile ---------------

Cell = str | int | float | None


class Code(str):
    """Text from a log, written as a code span."""

    __slots__ = ()


def code(text: str, limit: int = 80) -> str:
    """Returns a code span on one line, in which nothing is markup, a link or a mention.

    A pipe becomes a broken bar, because some renderers end a table cell even at an escaped pipe.
    Invisible characters become escapes.
    """
    escaped = shorten(escape_invisible(text), limit).replace("|", "\u00a6")
    ticks = "`" * (1 + max(map(len, re.findall("`+", escaped)), default=0))
    edge = " " if not escaped.strip() or escaped[0] == "`" or escaped[-1] == "`" else ""
    return f"{ticks}{edge}{escaped}{edge}{ticks}" if escaped else "` `"


def plain(text: str, limit: int = 80) -> str:
    """Returns text without markup for use outside a code span, such as a heading."""
    escaped = shorten(escape_invisible(text), limit)
    return "".join(f"&#{ord(char)};" if char in _SPECIAL else char for char in escaped)


_SPECIAL = frozenset("<>&|`[]()*_~#!\\$@:")


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Returns the lines of a table; a `str` is Markdown, `Code` is escaped."""
    written = list(rows)
    is_number = [
        any(len(row) > at and isinstance(row[at], int | float) for row in written)
        for at in range(len(columns))
    ]
    lines = [f"| {' | '.join(columns)} |"]
    lines.append("|" + "|".join("---:" if right else "---" for right in is_number) + "|")
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in written]
    return lines


def _cell(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, Code):
        return code(value)
    return value if isinstance(value, str) else number(value)


def indented(text: str) -> str:
    """Returns an indented code block, which no line of the text can end."""
    return "\n".join(f"    {escape_invisible(line)}".rstrip() for line in text.split("\n"))


_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
    (1_000_000_000, "100M<n<1B"),
)


@cache
def licenses() -> Mapping[str, str]:
    """Returns {spelling: the Hub's identifier of the licence} (Hub documentation, "Licenses")."""
    text = (files("builder.card") / "licenses.tsv").read_text(encoding="utf-8")
    return dict(line.split("\t") for line in text.splitlines()[1:])


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
) -> dict[str, Json]:
    """Returns the declarations for loaders, of the files of the first format."""
    kind = next(iter(data_files.values()))[0].partition(".")[2]
    features = sample_features(weighted=weighted, beside=beside)
    return declarations(data_files, kind, digest, features)


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
        if known in licenses():
            return licenses()[known]
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
