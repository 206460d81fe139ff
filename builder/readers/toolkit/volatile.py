"""Replaces dates and times in system prompts, so that prompts of one conversation compare equal.

A client that writes the time into its system prompt changes the prompt with every request.
"""

from __future__ import annotations

import re

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_TIME = (
    r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:\s?[AaPp]\.?[Mm]\b)?"
    r"(?:\s?(?:Z\b|UTC\b|GMT\b|[+-]\d{2}:?\d{2}\b))?"
)
_DATE = (
    r"(?:\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{4}|\d{1,2}\.\d{1,2}\.\d{4}"
    rf"|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{1,2}}\.? {_MONTH}\.?,? \d{{4}})"
)
_VOLATILE = re.compile(rf"\b(?:(?:{_WEEKDAY},? )?{_DATE}(?:(?:T|,? (?:at )?){_TIME})?|{_TIME})")


def without_volatile(text: str) -> str:
    """Replaces each date and time of day in the text by a placeholder.

    Forms: ISO 8601 ("2026-11-22T05:40:22Z"), "Sunday, November 22, 2026 at 5:40 PM",
    "22 Nov 2026", "11/22/2026", "22.11.2026", "17:40", "5:40:22 PM UTC".
    """
    return _VOLATILE.sub("\0time\0", text)
