"""Says in which form a command prints its result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """The form of the output: one JSON object (`--json`), errors only (`--quiet`), or words.

    `verbose` (`-v`): with every detail.
    """

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def in_words(self) -> bool:
        """Returns whether results are printed for people."""
        return not self.as_json and not self.quiet
