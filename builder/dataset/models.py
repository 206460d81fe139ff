"""Names the models of a sample, as its line of meta/ states them."""

from __future__ import annotations

from collections.abc import Mapping

from builder.conversation import Json


def models_of(meta: Mapping[str, Json]) -> list[str | None]:
    """Returns the models that gave the trained turns; None: the log does not name one.

    `models` is in meta/ only if there are several. Each name counts for filters and terms of use.
    """
    several = meta.get("models")
    names = several if isinstance(several, list) and several else [meta.get("model")]
    return [name if isinstance(name, str) else None for name in names]
