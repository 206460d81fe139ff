"""The tokenizer that a dataset is proven against: the authority, never our code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.conversation import Json
from builder.problem import UsageError
from builder.qwen3.constants import KNOWN_TEMPLATES, STRUCTURE_TOKENS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

EMBEDDED = "qwen3"
_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


@dataclass(frozen=True)
class Target:
    """A tokenizer with its chat template. `files`: {name: sha256} of what it was loaded from."""

    name: str
    files: dict[str, str]
    tokenizer: PreTrainedTokenizerBase
    template: str

    @cached_property
    def template_sha256(self) -> str:
        """sha256 of the chat template's text."""
        return hashlib.sha256(self.template.encode("utf-8")).hexdigest()

    @property
    def template_name(self) -> str:
        """The template's known name, or "unknown"."""
        return KNOWN_TEMPLATES.get(self.template_sha256, "unknown")

    @cached_property
    def added_tokens(self) -> tuple[str, ...]:
        """The tokens that are matched as text anywhere, in the order of their ids."""
        added = self.tokenizer.added_tokens_decoder
        return tuple(added[number].content for number in sorted(added))

    @cached_property
    def _added_ids(self) -> frozenset[int]:
        return frozenset(self.tokenizer.added_tokens_decoder)

    def render(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[Json] | None, **options: Any
    ) -> str:
        """The text of the tokenizer's own `apply_chat_template`. Raises whatever that raises."""
        definitions: Any = list(tools) if tools else None
        text = self.tokenizer.apply_chat_template(
            list(messages), tools=definitions, tokenize=False, **options
        )
        assert isinstance(text, str)
        return text

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, str]]]:
        """The ids of a rendering (no special tokens added), and (offset, token) of added tokens."""
        encoding = self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        ids: list[int] = encoding.ids
        added = self._added_ids
        positions = [at for at, number in enumerate(ids) if number in added]
        offsets = encoding.offsets if positions else ()
        return ids, [(offsets[at][0], text[slice(*offsets[at])]) for at in positions]

    def decode(self, ids: list[int]) -> str:
        """The text of ids, control tokens included, nothing cleaned up."""
        text = self.tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=False)
        assert isinstance(text, str)
        return text


def load(name: str = EMBEDDED) -> Target:
    """Load a tokenizer: "qwen3" (embedded), a folder, or a Hub id, perhaps with @revision.

    Raises UsageError: it cannot be found or reached, has no chat template, or is not of the
    Qwen3 family (its control tokens, its JSON calls).
    """
    if name == EMBEDDED and not Path(name).is_dir():
        with as_file(files("builder.qwen3") / "assets") as folder:
            return _load(name, folder, None)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _load(name, folder, None)
    if name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1:
        raise UsageError(f"tokenizer {name!r}: no such folder")
    repository, _, revision = name.partition("@")
    return _load(name, repository, revision or None)


def _load(name: str, where: Path | str, revision: str | None) -> Target:
    tokenizer = _pretrained(name, where, revision)
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    if not isinstance(template, str) or not template.strip():
        raise UsageError(f"tokenizer {name!r}: has no chat template")
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(f"tokenizer {name!r}: has no tokenizer.json")
    if "<function=" in template:
        raise UsageError(
            f"tokenizer {name!r}: its template writes calls as XML (<function=…>, Qwen3-Coder and"
            " later); this format is JSON calls"
        )
    added = {token.content for token in tokenizer.added_tokens_decoder.values()}
    missing = [token for token in STRUCTURE_TOKENS if token not in added or token not in template]
    missing = [token for token in missing if token not in added or "think" not in token]
    if missing:
        raise UsageError(
            f"tokenizer {name!r}: not of the Qwen3 family: no {', '.join(missing)}"
            " in its tokens and template"
        )
    return Target(name, _hashes(where), tokenizer, template)


def _pretrained(name: str, where: Path | str, revision: str | None) -> PreTrainedTokenizerBase:
    _quiet()
    from transformers import AutoTokenizer  # noqa: PLC0415 - a second of import, only when needed

    try:
        loaded = AutoTokenizer.from_pretrained(
            str(where), revision=revision or "main", trust_remote_code=False
        )
    except Exception as error:  # a library's many ways of saying that a tokenizer is not there
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"tokenizer {name!r}: cannot be loaded: {reason}") from None
    tokenizer: PreTrainedTokenizerBase = loaded
    return tokenizer


def _quiet() -> None:
    """Keep transformers from advising on stderr (no torch is needed for tokenizers)."""
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _hashes(where: Path | str) -> dict[str, str]:
    if not isinstance(where, Path):
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - only for Hub ids

        cached = {name: try_to_load_from_cache(where, name) for name in _FILES}
        paths = {name: Path(path) for name, path in cached.items() if isinstance(path, str)}
    else:
        paths = {name: where / name for name in _FILES if (where / name).is_file()}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(paths.items())
    }
