"""Defines the options of `audit.secrets` and `audit.personal_data`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """How `build` treats secrets and personal data before a sample is verified."""

    secrets: Literal["redact", "reject", "report", "off"] = "redact"
    personal_data: Literal["pseudonymise", "reject", "report", "off"] = "report"

    @property
    def needs_key(self) -> bool:
        """Returns whether replacements depend on the key of the run."""
        return self.secrets != "off" or self.personal_data == "pseudonymise"

    @property
    def summary(self) -> str:
        """Describes the treatment in sentences, for the card and the terminal."""
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
