"""Explains every code of a loss: what it means, an example, what to do, the option that keeps it.

`codes.tsv` has a row for each, whose last cell may be missing: code, meaning, example, remedy,
option. `words.tsv` has the meaning of the codes that are no loss: what was changed, and records
without a conversation. Backticks mark code. docs/output.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

DUPLICATE = "duplicate"
"""The code of what is in the dataset already: nothing is lost."""

UNTRAINED = "untrained:"
"""Prefix of a change: turns that are context only, for the reason after it."""

SELECTED = "select_"
"""Prefix of the codes of `select.where`: the rest is the user's field."""

AUDIT_OPTIONS: Mapping[str, str] = {
    "secrets": "audit.secrets: redact",
    "personal_data": "audit.personal_data: pseudonymise",
    "near_duplicate": "audit.near_duplicates: drop",
    "evaluation_run": "select.where: {outcome.benchmark: {in: [null]}}",
}
"""The option that removes from the dataset what an audit finds, by audit or code."""

SECRETS_LEFT = (
    "`audit.secrets` leaves results of password generators in place (docs/audit.md). Check them,"
    " and reject the samples in `builder view` if they are real."
)
"""What to do about secrets that a build left by design."""


ON_REQUEST = frozenset(
    (
        *("evaluation_data", "mapped_skip", "mix", "near_duplicate", "no_thought", "review"),
        *("unreviewed", "weight"),
    )
)
"""Codes of what the user's configuration or review leaves out, beside those of `SELECTED`."""

NOTHING_TO_TRAIN = ON_REQUEST | frozenset(
    (
        # the log has no answer to train
        *("no_user", "no_assistant", "no_messages", "no_target", "no_response", "aborted"),
        *("no_model_response", "no_model_span", "request_failed", "batch_expired", "failed_trace"),
        # the answers are not the model's own work for a user
        *("warmup", "demonstration", "grader", "harness_call", "user_action", "inserted"),
        *("prefilled", "zero_weight"),
        # another conversation has what is trained
        *("dispreferred", "retry", "repeat", "captured", "not_chosen", "malformed_answer"),
        "rewound",
    )
)
"""Codes of conversations that lack nothing that could be trained: leaving them out is no loss."""

_CHECKS: Mapping[str, str] = {
    "changed": "not what the build wrote: differs from its manifest or from meta/",
    "order": "no messages, unknown roles, or roles that do not alternate as the template needs",
    "repeated": "the same as an earlier row",
    "weight": "nothing is trained, or weights change the rendering",
}
"""{code: meaning} of checks of `builder verify` whose codes mean more or less in a build."""


@dataclass(frozen=True, slots=True)
class CodeText:
    """A row of the table; `option` is "" if no option keeps what has the code."""

    meaning: str
    example: str
    remedy: str
    option: str = ""

    @property
    def advice(self) -> str:
        """Returns the remedy in plain text if it is no option of a build, or ""."""
        is_none = self.remedy.startswith("none")
        is_option = self.option or "`normalize." in self.remedy or "`verify." in self.remedy
        return "" if is_none or is_option else self.remedy.replace("`", "")


_CONDITION = CodeText(
    "does not meet a condition of `select.where`",
    "`select.where: {calls: {min: 1}}` and a sample without calls",
    "`select.where`: another condition",
)


@cache
def code_texts() -> Mapping[str, CodeText]:
    """Returns the table by code."""
    return {code: CodeText(*cells) for code, *cells in _table("codes.tsv")}


@cache
def code_words() -> Mapping[str, str]:
    """Returns {code: meaning} of changes and of records without a conversation."""
    return {code: words for code, words, *_ in _table("words.tsv")}


def _table(name: str) -> Iterator[list[str]]:
    text = (files("builder") / name).read_text(encoding="utf-8")
    return (line.split("\t") for line in text.splitlines()[1:])


def explain(code: str) -> CodeText | None:
    """Returns the text of a code, or None, as for the name of a record type."""
    found = code_texts().get(code) or code_texts().get(code.partition(":")[0])
    if found is None and code.startswith(SELECTED):
        return _CONDITION
    return found


def is_loss(code: str) -> bool:
    """Returns whether what was left out under the code could have been trained."""
    is_loss = code not in NOTHING_TO_TRAIN and not code.startswith(SELECTED)
    return is_loss and code != DUPLICATE


def is_on_request(code: str) -> bool:
    """Returns whether the user's configuration or review leaves out what has the code."""
    return code in ON_REQUEST or code.startswith(SELECTED)


def meaning(code: str) -> str:
    """Returns the meaning of a code, or "", as for the name of a record type."""
    found = explain(code)
    return found.meaning if found is not None else _words(code)


def meaning_of_check(code: str) -> str:
    """Returns the meaning of a code of `builder verify`, or ""."""
    return _CHECKS.get(code) or meaning(code)


def meaning_of_change(code: str) -> str:
    """Returns the meaning of a code in `meta.changes`, or ""."""
    if code.startswith(UNTRAINED):
        return f"turns that are context: {meaning(code.removeprefix(UNTRAINED))}"
    return _words(code) or meaning(code)


def _words(code: str) -> str:
    return code_words().get(code) or code_words().get(code.partition(":")[0], "")


def option_of(code: str) -> str | None:
    """Returns the option that keeps what has the code, or None."""
    found = explain(code)
    return found.option or None if found is not None else None
