"""Finds secrets and personal data in a dataset, in meta/ and in the rejects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from builder.audit.notes import REDACTED, AuditRow, FindingNotes
from builder.dataset.rejects import REJECTS, Reject
from builder.finding import FindingExample
from builder.scrub.people import named_person
from builder.scrub.personal import KINDS as PERSONAL_KINDS
from builder.scrub.personal import find_personal, personal_in
from builder.scrub.redact import secrets_in_name
from builder.secrets.secrets import KINDS as SECRET_KINDS
from builder.secrets.secrets import (
    MARK,
    find_secrets,
    mask_pieces,
    named_secret,
    scanned_secrets,
    secrets_in,
)

SECRETS = {
    **{kind: f"keys of the form {kind.replace('_', ' ')}" for kind in sorted(SECRET_KINDS)},
    "secret": "values that a name, a header or a URL marks as secret",
    "scanned_secret": "secrets that the scanner of the optional extra found",
    "private_key": "private keys",
    REDACTED: "placeholders in place of secrets",
}
"""{code: message}"""
PERSONAL = {
    **dict.fromkeys(PERSONAL_KINDS, "data of people, as keys of JSON say"),
    "mail": "mail addresses",
    "phone": "phone numbers",
    "ip": "public IP addresses",
    "iban": "bank accounts with valid check digits",
    "card": "card numbers with a valid check digit",
    "user_name": "names of users in paths and prompts",
    "host_name": "names of machines",
    "national_id": "national identity numbers with valid check digits",
}
"""{code: message}"""

_PLACEHOLDER = re.compile(MARK + r"[A-Z_]+_\d{12}")
_META = ("source", "record", "conversation", "model", "license")


def note_leaks(row: AuditRow, notes: FindingNotes) -> None:
    """Examines every text of a sample and its line of meta/. Nothing quotes what was found."""
    named = list(row.texts())
    known = set() if row.without_secrets else _look(row, named, notes)
    _look_for_others(row, named, notes)
    meta = [(f"meta.{key}", "", getattr(row.meta, key) or "") for key in _META]
    meta += [("meta.models", "", name or "") for name in row.meta.every_model[1:]]
    _look(row, meta, notes, in_meta=True)
    _look_for_others(row, meta, notes, in_meta=True)
    for secret in () if row.without_secrets else scanned_secrets([text for *_, text in named]):
        if not any(secret in item or item in secret for item in known):
            notes.add("scanned_secret", row, "", f"{len(secret)} characters")


def _look(
    row: AuditRow,
    named: Sequence[tuple[str, str, str]],
    notes: FindingNotes,
    *,
    in_meta: bool = False,
) -> set[str]:
    """Notes the secrets in each (part, name, text); returns them for comparison."""
    known: set[str] = set()
    searched = zip(named, secrets_in([text for _, _, text in named]), strict=True)
    for (part, name, text), found in searched:
        secrets = secrets_in_name(text) if found and part == "meta.source" else found
        for hit in secrets:
            known.add(text[hit.start : hit.end])
            masked = partial(_masked, text, hit.start, hit.end)
            notes.add(hit.kind, row, part, masked, in_meta=in_meta)
        if name and not secrets and named_secret(name, text):
            known.add(text)
            notes.add("secret", row, part, f"{len(text)} characters under {name[:40]!r}")
    return known


def _look_for_others(
    row: AuditRow,
    named: Sequence[tuple[str, str, str]],
    notes: FindingNotes,
    *,
    in_meta: bool = False,
) -> None:
    """Notes personal data and placeholders in each (part, name, text)."""
    searched = zip(named, personal_in([text for _, _, text in named]), strict=True)
    for (part, name, text), personal in searched:
        keyed = None if part.startswith("tools") else named_person(name, text)
        for hit in (keyed,) if keyed else personal:
            masked = partial(_masked, text, hit.start, hit.end)
            notes.add(hit.kind, row, part, masked, in_meta=in_meta)
        if count := len(_PLACEHOLDER.findall(text)):
            notes.add(REDACTED, row, part, "", count)


def note_reject(number: int, reject: Reject, notes: FindingNotes) -> None:
    """Examines the message of line `number` of rejects.jsonl."""
    for hit in find_secrets(reject.message):
        context = _masked(reject.message, hit.start, hit.end)
        place = FindingExample(f"{REJECTS}:{number}", part="message", detail=context)
        notes.add_elsewhere(hit.kind, place)


def _masked(text: str, start: int, end: int) -> str:
    """Returns the text before a hit, masked as well, and the length of the hit."""
    before = text[max(0, start - 24) : start]
    hits = [*find_secrets(before), *find_personal(before)]
    for hit in reversed(hits):
        before = before[: hit.start] + "…" + before[hit.end :]
    return f"{' '.join(mask_pieces(before).split())}[{end - start} characters]"
