"""Words advice for a command line: keys of the configuration as options to copy."""

from __future__ import annotations

import re
import shlex

from builder.normalize.remedies import JOINED

_SETTING = re.compile(
    r"`((?:audit|limits|normalize|select|split|train|verify)(?:\.\w+)*): (\{[^`]*|[^`\s]+)`"
)
"""A key with its value between backticks; a value in words is not one to copy."""
_JOINED_OPTIONS = re.compile(r"(--set [^`]*)` (?:and|with) `(--set )")
"""Two options that are pasted together."""


def with_options(text: str) -> str:
    """Returns advice for a command line: `key: value` becomes `--set key=value`.

    Code stays between backticks, for `print_wrapped`.
    """
    options = _SETTING.sub(lambda found: f"`{_option(found)}`", text)
    return _JOINED_OPTIONS.sub(r"\1 \2", options)


def option_for(setting: str) -> str:
    """Returns the option for what keeps a conversation: keys with their values, or an option."""
    marked = with_options(JOINED.join(f"`{part}`" for part in setting.split(JOINED)))
    return marked.replace("`", "")


def _option(found: re.Match[str]) -> str:
    return f"--set {shlex.quote(f'{found[1]}={found[2]}')}"
