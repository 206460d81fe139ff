"""Finds secrets and personal data in a dataset, in meta/ and in the rejects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from builder.audit.notes import AuditRow, FindingNotes
from builder.dataset.rejects import REJECTS, Reject
from builder.finding import AuditFinding, FindingExample, GateAction
from builder.scrub.people import named_person
from builder.scrub.personal import find_personal, personal_in
from builder.scrub.redact import secrets_in_name
from builder.secrets.secrets import (
    MARK,
    find_secrets,
    mask_pieces,
    named_secret,
    scanned_secrets,
    secrets_in,
)

_SECRETS = {
    "secret": "values that a name, a header or a URL marks as secret",
    "scanned_secret": "secrets that the scanner of the optional extra found",
    "private_key": "private keys",
}
_PERSONAL = {
    "mail": "mail addresses",
    "phone": "phone numbers",
    "ip": "public IP addresses",
    "iban": "bank accounts with valid check digits",
    "card": "card numbers with a valid check digit",
    "user_name": "names of users in paths and prompts",
    "host_name": "names of machines",
    "national_id": "national identity numbers with valid check digits",
}

_PLACEHOLDER = re.compile(MARK + r"[A-Z_]+_\d{12}")
_META = ("source", "record", "conversation", "model", "license")


class Leaks:
    """Examines every text of a dataset. Findings never quote what was found."""

    def __init__(self) -> None:
        self.secrets = FindingNotes()
        self.personal = FindingNotes()
        self.meta_secrets = FindingNotes()
        self.meta_personal = FindingNotes()
        self.replaced = FindingNotes()

    def add(self, row: AuditRow) -> None:
        """Examines a sample and its line of meta/."""
        named = list(row.texts())
        known = set() if row.without_secrets else self._look(row, named, self.secrets)
        self._look_for_others(row, named, self.personal)
        meta = [(f"meta.{key}", "", getattr(row.meta, key) or "") for key in _META]
        meta += [("meta.models", "", name or "") for name in row.meta.every_model[1:]]
        self._look(row, meta, self.meta_secrets)
        self._look_for_others(row, meta, self.meta_personal)
        for secret in () if row.without_secrets else scanned_secrets([text for *_, text in named]):
            if not any(secret in item or item in secret for item in known):
                self.secrets.add("scanned_secret", row, "", f"{len(secret)} characters")

    def merge(self, later: Leaks) -> None:
        """Adds the findings of the samples that follow."""
        self.secrets.merge(later.secrets)
        self.personal.merge(later.personal)
        self.meta_secrets.merge(later.meta_secrets)
        self.meta_personal.merge(later.meta_personal)
        self.replaced.merge(later.replaced)

    def _look(
        self, row: AuditRow, named: Sequence[tuple[str, str, str]], notes: FindingNotes
    ) -> set[str]:
        """Notes the secrets in each (part, name, text); returns them for comparison."""
        known: set[str] = set()
        searched = zip(named, secrets_in([text for _, _, text in named]), strict=True)
        for (part, name, text), found in searched:
            secrets = secrets_in_name(text) if found and part == "meta.source" else found
            for hit in secrets:
                known.add(text[hit.start : hit.end])
                notes.add(hit.kind, row, part, partial(_masked, text, hit.start, hit.end))
            if name and not secrets and named_secret(name, text):
                known.add(text)
                detail = f"{len(text)} characters under {name[:40]!r}"
                notes.add("secret", row, part, detail)
        return known

    def _look_for_others(
        self, row: AuditRow, named: Sequence[tuple[str, str, str]], notes: FindingNotes
    ) -> None:
        """Notes personal data and placeholders in each (part, name, text)."""
        searched = zip(named, personal_in([text for _, _, text in named]), strict=True)
        for (part, name, text), personal in searched:
            keyed = None if part.startswith("tools") else named_person(name, text)
            for hit in (keyed,) if keyed else personal:
                notes.add(hit.kind, row, part, partial(_masked, text, hit.start, hit.end))
            if count := len(_PLACEHOLDER.findall(text)):
                self.replaced.add("redacted", row, part, "", count)

    def add_reject(self, number: int, reject: Reject) -> None:
        """Examines the message of line `number` of rejects.jsonl."""
        for hit in find_secrets(reject.message):
            context = _masked(reject.message, hit.start, hit.end)
            place = FindingExample(f"{REJECTS}:{number}", part="message", detail=context)
            self.secrets.add_elsewhere(hit.kind, place)

    def findings(self) -> Iterator[AuditFinding]:
        """Yields a finding for each kind."""
        for code in sorted({*self.secrets.codes(), *self.meta_secrets.codes()}):
            message = _SECRETS.get(code, f"keys of the form {code.replace('_', ' ')}")
            yield _finding("secrets", code, message, self.secrets, self.meta_secrets)
        for code in self.replaced.codes():
            yield self.replaced.finding(
                "secrets", code, "placeholders in place of secrets", GateAction.change
            )
        for code in sorted({*self.personal.codes(), *self.meta_personal.codes()}):
            message = _PERSONAL.get(code, "data of people, as keys of JSON say")
            yield _finding("personal_data", code, message, self.personal, self.meta_personal)


def _finding(
    audit: str, code: str, message: str, notes: FindingNotes, in_meta: FindingNotes
) -> AuditFinding:
    """Returns the finding for a code.

    Its count is that of the samples, with or without meta/: the message has that of meta/.
    """
    if code not in in_meta:
        return notes.finding(audit, code, message)
    found = in_meta.finding(audit, code, f"{message}, in meta/")
    if code not in notes:
        return found
    return notes.finding(audit, code, f"{message}, and {found.count:,} more in meta/")


def _masked(text: str, start: int, end: int) -> str:
    """Returns the text before a hit, masked as well, and the length of the hit."""
    before = text[max(0, start - 24) : start]
    hits = [*find_secrets(before), *find_personal(before)]
    for hit in reversed(hits):
        before = before[: hit.start] + "…" + before[hit.end :]
    return f"{' '.join(mask_pieces(before).split())}[{end - start} characters]"
