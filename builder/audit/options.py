"""The choices of `audit:` and `mix:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """What is done in `build` before a sample is verified.

    secrets        redact, reject, report or off
    personal_data  pseudonymise, reject, report or off
    """

    secrets: str = "redact"
    personal_data: str = "report"

    @property
    def needs_key(self) -> bool:
        """Does a stand-in follow from the key of the run?"""
        return self.secrets != "off" or self.personal_data == "pseudonymise"

    @property
    def told(self) -> str:
        """What was done, in sentences for the card and the terminal."""
        return f"{_SECRETS[self.secrets]} {_PERSONAL[self.personal_data]}"


_SECRETS = {
    "redact": "Secrets were looked for in every text and replaced by placeholders.",
    "reject": "Conversations in which a secret was found were left out.",
    "report": "Secrets were looked for and left where they are.",
    "off": "Nothing was scanned for secrets.",
}
_PERSONAL = {
    "pseudonymise": "Personal data were looked for by their form and replaced by pseudonyms.",
    "reject": "Conversations in which personal data were found by their form were left out.",
    "report": "Personal data were looked for by their form and left where they are.",
    "off": "Nothing was scanned for personal data.",
}


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What an audit of a dataset is told.

    contamination   evaluation sets: files, folders or names on the Hub
    mix             target shares by pattern, drawn beside the shares found
    near            are near duplicates looked for?
    tokenizer       counts the tokens of datasets that have no meta/
    """

    contamination: tuple[str, ...] = ()
    mix: Mapping[str, float] = field(default_factory=dict)
    near: bool = True
    tokenizer: str = "qwen3"
