"""Prints the accounting of a build: what was found and used, and why the rest was not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice

from builder.cli.terminal import DIM, WARNING, aligned, escaped, painted, print_wrapped
from builder.codes import explain, is_loss, meaning, option_of
from builder.ledger import Ledger, ranked
from builder.normalize.remedies import option_for, recovery
from builder.readers.toolkit.narrow import UNKNOWN_TYPE
from builder.text import counted

_SHOWN_TYPES = 5
_NO_TYPE = "no type at all"
_SPEAKERS = ("user", "assistant")
"""Types that every reader knows: such a record is ignored because it holds no message."""
_SHOWN_CODES = 3
_REASONS = "see rejects.jsonl"
_NOTHING = "ignored: nothing to train, or left out on request"
_CUT = "conversations shortened"


def print_ledger(ledger: Ledger, *, verbose: bool) -> None:
    """Prints the table of what was found, used and left out, and the unknown types."""
    table: list[tuple[str | int | None, ...]] = [
        ("", "found", "used", "duplicate", "ignored", "rejected")
    ]
    for one in ledger.accounts:
        duplicates = None if one.unit == "records" else one.duplicates
        ignored, rejected = sum(one.ignored.values()), sum(one.rejected.values())
        table.append((one.unit, one.found, one.used, duplicates, ignored, rejected))
    filled = [column for column in zip(*table, strict=True) if any(column[1:])]
    rows = [[_cell(cell) for cell in row] for row in zip(*filled, strict=True)]
    for number, line in enumerate(aligned(rows)):
        print("  " + (painted(line, DIM) if number == 0 else line))
    types = {
        code.removeprefix(UNKNOWN_TYPE): count
        for code, count in ledger.ignored.most_common()
        if code.startswith(UNKNOWN_TYPE)
    }
    unread = {name: count for name, count in types.items() if name in _SPEAKERS}
    unknown = {name: count for name, count in types.items() if name not in _SPEAKERS}
    for title, counts in (
        ("records of unknown types", unknown),
        ("records without a message that can be read", unread),
    ):
        if not counts:
            continue
        most = len(counts) if verbose else _SHOWN_TYPES
        named = ((_NO_TYPE if name == "null" else escaped(name), n) for name, n in counts.items())
        shown = [f"{name} {n:,}" for name, n in islice(named, most)]
        more = ", …" if len(counts) > most else ""
        print(f"  {title}, ignored: {', '.join(shown)}{more}")


def _cell(value: str | int | None) -> str:
    return f"{value:,}" if isinstance(value, int) else value or ""


def print_rejects(ledger: Ledger, kept_by: str, *, verbose: bool) -> None:
    """Prints rejects by code with its meaning, and the option that would keep them.

    `kept_by` introduces the option.
    """
    _, conversations, samples, calls = ledger.accounts
    known = ledger.conversations_rejected
    for title, codes, remedy in (
        ("records rejected", ledger.rejected, _outside),
        ("conversations rejected", conversations.rejected, partial(_kept_by, ledger, kept_by)),
        (f"conversations {_NOTHING}", conversations.ignored, partial(_kept_by, ledger, kept_by)),
        (_CUT, ledger.cut, _outside),
        ("samples rejected", _others(samples.rejected, known), partial(_sample_kept_by, kept_by)),
        (f"samples {_NOTHING}", _others(samples.ignored, known), partial(_sample_kept_by, kept_by)),
        ("calls rejected", calls.rejected, None),
        (f"calls {_NOTHING}", calls.ignored, None),
    ):
        if not sum(codes.values()) or not (verbose or remedy is not None):
            continue
        print(f"  {painted(title, WARNING)}")
        ordered = [item for item in ranked(codes) if item[1]]
        shown = ordered if verbose else ordered[:_SHOWN_CODES]
        width = max(len(code) for code, _ in shown)
        for code, count in shown:
            begin = f"    {escaped(code):{width}}  {count:>8,}  "
            print_wrapped(begin, meaning(code).replace("`", "") or _REASONS, " " * len(begin))
            if note := remedy(code) if remedy is not None else "":
                print(" " * len(begin) + note)
        left = len(ordered) - len(shown)
        if left:
            print(painted(f"    and {counted(left, 'other reason')} (-v)", DIM))


def _others(samples: Mapping[str, int], conversations: Mapping[str, int]) -> dict[str, int]:
    return {code: n for code, n in samples.items() if n != conversations.get(code)}


def _sample_kept_by(kept_by: str, code: str) -> str:
    option = option_of(code)
    return f"{kept_by} {option_for(option)}" if option else ""


def _kept_by(ledger: Ledger, kept_by: str, code: str) -> str:
    count, option = recovery(ledger, code)
    some = "" if count == ledger.conversations_rejected[code] else f"{count:,} of them "
    return f"{some}{kept_by} {option_for(option)}" if count else _outside(code)


def _outside(code: str) -> str:
    known = explain(code)
    advice = known.advice if known is not None and is_loss(code) else ""
    return f"→ {advice}" if advice else ""
