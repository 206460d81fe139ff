"""Names the options that keep what was rejected, unless they are set already."""

from __future__ import annotations

from builder.codes import option_of
from builder.normalize.options import NormalizeOptions

ALLOW_EVAL = "--allow-eval"


def remedy(code: str, options: NormalizeOptions) -> str | None:
    """Returns the option that keeps what was rejected under `code`; None if it is set already."""
    option = option_of(code)
    if option == ALLOW_EVAL:
        return None if options.allow_eval else option
    section, _, setting = (option or "").partition(".")
    name, _, value = setting.partition(": ")
    is_set = section == "normalize" and getattr(options, name) == value
    return None if is_set else option


def record_remedy(code: str) -> str | None:
    """Returns the option that keeps records rejected under `code`, or None.

    A record that cannot be read has no turns, so no option of the normaliser applies to it.
    """
    return option_of(code) if code == "too_large" else None
