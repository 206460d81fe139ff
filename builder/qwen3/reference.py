"""Names a target in one text: a tokenizer, optionally with another chat template and its options.

`NAME`, or `NAME?chat_template=FILE&reasoning_effort=low`: values of options are JSON. Commands,
configurations and worker processes pass targets in this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, quote

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads

EMBEDDED = "qwen3"
_CHAT_TEMPLATE = "chat_template"
_MODEL = "model"


@dataclass(frozen=True, slots=True)
class Reference:
    """A target: its tokenizer, the file or hash of another template, options for the template.

    `model` is the repository of the model to train, which exports name.
    """

    tokenizer: str = EMBEDDED
    chat_template: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    model: str = ""

    def __str__(self) -> str:
        """Returns the text that `reference` reads."""
        pairs = [(_CHAT_TEMPLATE, self.chat_template)] if self.chat_template else []
        pairs += [(_MODEL, self.model)] if self.model else []
        pairs += [(name, dumps(value)) for name, value in self.options.items()]
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs)
        return f"{self.tokenizer}?{query}" if query else self.tokenizer


def reference(text: str) -> Reference:
    """Reads a target's name. A folder may have a question mark in its own name."""
    tokenizer, mark, query = text.rpartition("?")
    if not mark or "=" not in query or Path(text).expanduser().is_dir():
        return Reference(text)
    pairs = dict(parse_qsl(query, keep_blank_values=True))
    template, model = pairs.pop(_CHAT_TEMPLATE, None), pairs.pop(_MODEL, "")
    options = {name: _value(item) for name, item in pairs.items()}
    return Reference(tokenizer, template, options, model)


def is_path(tokenizer: str) -> bool:
    """Returns whether a tokenizer's name can only be a folder's."""
    return tokenizer.startswith((".", "/", "~")) or "\\" in tokenizer or tokenizer.count("/") > 1


def with_template(
    name: str, chat_template: str | None, options: Mapping[str, Json] | None = None, model: str = ""
) -> str:
    """Returns the name of a target with another template, and what it lacks of the rest."""
    target = reference(name)
    target = replace(target, model=target.model or model)
    if chat_template is not None:
        target = replace(target, chat_template=chat_template)
    if options and not target.options:
        target = replace(target, options=options)
    return str(target)


def absolute(text: str) -> str:
    """Returns the same name with absolute paths."""
    target = reference(text)

    def located(path: str) -> str:
        place = Path(path).expanduser()
        return str(place.absolute()) if place.exists() and path != EMBEDDED else path

    template = target.chat_template and located(target.chat_template)
    return str(replace(target, tokenizer=located(target.tokenizer), chat_template=template))


def _value(text: str) -> Json:
    try:
        return loads(text)
    except JsonFault:
        return text


def is_here(name: str) -> bool:
    """Returns whether a target is loaded without the Hub: all but Hub ids that are not cached."""
    tokenizer = reference(name).tokenizer
    is_folder = is_path(tokenizer) or Path(tokenizer).expanduser().is_dir()
    return is_folder or tokenizer == EMBEDDED or _is_cached(tokenizer)


def not_here(name: str) -> str:
    """Returns what to do about a tokenizer that only a manifest names, and that is not here."""
    return (
        f"tokenizer {name!r}: not on this machine, and only the dataset's manifest names it:"
        f" `builder verify DATASET --tokenizer {name}` loads it from the Hub"
    )


def _is_cached(name: str) -> bool:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - only for Hub ids

    repository, _, revision = name.partition("@")
    try:
        folder = snapshot_download(repository, revision=revision or None, local_files_only=True)
    except Exception:  # the client raises many types for what is not an id, or not in its cache
        return False
    return (Path(folder) / "tokenizer.json").is_file()
