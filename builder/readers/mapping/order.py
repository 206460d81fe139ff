"""Orders the records of a conversation by numbers, times or numbered names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from builder.conversation import Json

_NUMBER = re.compile(r"\s*-?\d{1,15}(?:\.\d{1,15})?\s*", re.ASCII)
"""A number in a text: a table in CSV has nothing else."""
_DIGITS = re.compile(r"(\d+)", re.ASCII)
_SECONDS = 1_000_000_000
"""A number of seconds since 1970 that no count of other things reaches: in 2001."""
_HALF = re.compile(r"\b[ap]m\b|(?<=\d)[ap]m\b", re.IGNORECASE)
_DAY_OR_MONTH = re.compile(r"\s*(\d{1,2})([./])(\d{1,2})\2(\d{4})(.*)", re.ASCII | re.DOTALL)
"""A date whose year is last: with dots, the day is first; with slashes, the day or the month."""


def places_of(values: Sequence[Json]) -> list[Any] | None:
    """Returns keys by which values are sorted: numbers, times, or texts with numbers in them.

    Numbers and times may be texts. None if a value is neither a number nor a text, or if it is not
    clear which part of their dates is the day.
    """
    if all(isinstance(value, int | float) for value in values):
        return [*values]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        return None
    if all(map(_NUMBER.fullmatch, texts)):
        return [*map(float, texts)]
    dates = [_DAY_OR_MONTH.fullmatch(text) for text in texts]
    found = [date for date in dates if date is not None]
    if len(found) == len(texts):
        return _days(found)
    times = [_time(text) for text in texts]
    return [_natural(text) for text in texts] if None in times else times


def is_time(value: Json) -> bool:
    """Returns whether a value is a date with a time of day, or seconds or less since 1970."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value >= _SECONDS
    if not isinstance(value, str) or ":" not in value:
        return False
    return _time(value) is not None or _DAY_OR_MONTH.fullmatch(value) is not None


def _days(dates: Sequence[re.Match[str]]) -> list[Any] | None:
    """Returns the keys of dates whose year is last."""
    firsts, seconds = ({int(date[at]) for date in dates} for at in (1, 3))
    is_day_first = {date[2] for date in dates} == {"."} or max(firsts) > 12
    is_clear = is_day_first or max(seconds) > 12 or len(firsts) == 1 or len(seconds) == 1
    if not is_clear or (is_day_first and max(seconds) > 12):
        return None
    day, month = (1, 3) if is_day_first else (3, 1)
    return [(int(date[4]), int(date[month]), int(date[day]), *_clock(date[5])) for date in dates]


def _clock(text: str) -> tuple[tuple[int, str], list[Any]]:
    """Returns a key for the time of day: the hour of a clock of 12 hours counts from midnight."""
    parts = _natural(text)
    hour = parts[1] if len(parts) > 1 else _number("")
    if (half := _HALF.search(text)) is not None and hour[0] <= 2:
        hour = _number(str(int(hour[1] or 0) % 12 + 12 * (half[0].lower() == "pm")))
    return hour, parts[2:]


def _time(text: str) -> datetime | None:
    """Returns the time of a text in ISO 8601, in UTC if it names no zone."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _natural(text: str) -> list[Any]:
    """Returns a key that sorts `step-2` before `step-10`: texts and numbers by turns."""
    return [_number(one) if at % 2 else one for at, one in enumerate(_DIGITS.split(text))]


def _number(digits: str) -> tuple[int, str]:
    """Returns a key that sorts numbers of any length; `int` refuses those of many digits."""
    significant = digits.lstrip("0")
    return len(significant), significant
