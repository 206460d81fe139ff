"""Names the options that keep what was rejected, where they would."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

from builder.codes import option_of
from builder.conversation import Conversation
from builder.ledger import Ledger
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions

_ALLOW_EVAL = "--allow-eval"

_SETTING = re.compile(r"normalize\.(\w+): (\w+)")


def remedy(conversation: Conversation, code: str, options: NormalizeOptions) -> str | None:
    """Returns the option that keeps a conversation rejected under `code`; None if none does.

    Options of the normaliser are tried: what remains may have nothing to train, or another fault.
    """
    option = option_of(code)
    if option is None or (changed := _changed(option, options)) is None:
        return option
    if changed == options:  # it is set already
        return None
    return None if normalise(conversation, changed).dialogue is None else option


def _changed(option: str, options: NormalizeOptions) -> NormalizeOptions | None:
    """Returns the options with this one set; None if it is not one of the normaliser's."""
    if option == _ALLOW_EVAL:
        return replace(options, allow_eval=True)
    parsed = _SETTING.fullmatch(option)
    setting: dict[str, Any] = {parsed[1]: parsed[2]} if parsed is not None else {}
    return replace(options, **setting) if parsed is not None else None


def recovery(ledger: Ledger, code: str) -> tuple[int, str]:
    """Returns how many of the conversations rejected under `code` an option keeps, and the option.

    (0, "") if none would be kept.
    """
    count = ledger.recoverable[code]
    return (count, option_of(code) or "") if count else (0, "")


_KEY = re.compile(
    r"`((?:audit|limits|normalize|select|split|verify)(?:\.\w+)*): ([\[{][^`]*|[^`\s]+)`"
)
"""A key with its value between backticks; a value in words is not one to copy."""
_JOINED_OPTIONS = re.compile(r"(--set [^`]*)` (?:and|with) `(--set )")
"""Two options that are pasted together."""


def with_options(text: str) -> str:
    """Returns advice for a command line: `key: value` becomes `--set key=value`.

    Code stays between backticks, for `print_wrapped`.
    """
    options = _KEY.sub(lambda found: f"`{_option(found)}`", text)
    return _JOINED_OPTIONS.sub(r"\1 \2", options)


def option_for(setting: str) -> str:
    """Returns the option for what keeps a conversation: keys with their values, or an option."""
    return with_options(f"`{setting}`").replace("`", "")


def _option(found: re.Match[str]) -> str:
    return f"--set {shlex.quote(f'{found[1]}={found[2]}')}"
