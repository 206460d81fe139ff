"""Describes what may look at the records of a source while they are decoded."""

from __future__ import annotations

from typing import Protocol

from builder.conversation import Json


class Watch(Protocol):
    """Looks at what a source decodes (`builder.readers.toolkit.unknown_keys`)."""

    def see(self, where: str, value: Json, /) -> None:
        """Looks at a decoded record."""

    def begin_item(self) -> None:
        """Begins an item of the file, whose events do not depend on the items before it."""
