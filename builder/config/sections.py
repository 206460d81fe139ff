"""Defines the sections of the configuration and their defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, cast

from builder.audit.failures import Pattern
from builder.audit.options import AuditOptions
from builder.conversation import Json
from builder.normalize.options import LengthOptions, NormalizeOptions
from builder.options import INLINE, Number, Scalar, options, plain
from builder.output.manifest import DEFAULT_NAME, OutputOptions
from builder.paths import UserPath
from builder.problem import UsageError
from builder.qwen3.models import model_named, target_of
from builder.qwen3.reference import EMBEDDED, Reference, with_template
from builder.readers.mapping.spec import MappingSpec
from builder.scrub.options import ScrubOptions
from builder.select.choice import SplitOptions
from builder.select.conditions import TOKENS, Condition, SelectOptions
from builder.sources.store import is_url
from builder.verify.options import VerifyOptions


@dataclass(frozen=True, slots=True)
class InputSection:
    """`inputs[]`: the location of logs, and what they do not record themselves.

    A text is the path alone. `mapping` is a file or the mapping itself.
    """

    SHORT: ClassVar[str] = "path"

    path: UserPath
    format: str = "auto"
    mapping: UserPath | MappingSpec | None = None
    tools: tuple[UserPath, ...] = ()
    system: tuple[UserPath, ...] = ()
    license: str | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class VerifySection:
    """`verify`: the tokenizer (qwen3, a folder or a Hub id), its chat template, and options.

    model          the model to train, by its Hub id or a part of it: tokenizer and template follow
    chat_template  a file or the sha256 of another template; template: variables passed to it.
    """

    model: str | None = None
    tokenizer: UserPath = field(default_factory=lambda: UserPath(EMBEDDED))
    chat_template: UserPath | None = None
    template: Mapping[str, Scalar] = field(default_factory=dict)
    options: VerifyOptions = field(default_factory=VerifyOptions, metadata=INLINE)

    @property
    def target(self) -> str:
        """Returns the name of the target (`builder.qwen3.reference`), with paths that exist."""
        name = self.tokenizer.written
        model = model_named(self.model) if self.model else None
        if model is not None and name == EMBEDDED and self.chat_template is None:
            return with_template(target_of(model), None, cast("Mapping[str, Json]", self.template))
        if name != EMBEDDED and self.tokenizer.located.is_dir():
            name = str(self.tokenizer.located)
        if self.chat_template is None and not self.template and model is None:
            return name
        template = None
        if self.chat_template is not None:
            is_file = self.chat_template.located.is_file()
            template = str(self.chat_template.located) if is_file else self.chat_template.written
        options = cast("Mapping[str, Json]", self.template)
        return str(Reference(name, template, options, model.name if model is not None else ""))


@dataclass(frozen=True, slots=True)
class AuditSection:
    """`audit`: what is replaced before verification, and what is examined afterwards."""

    scrub: ScrubOptions = field(default_factory=ScrubOptions, metadata=INLINE)
    options: AuditOptions = field(default_factory=AuditOptions, metadata=INLINE)


Keys: TypeAlias = Mapping[str, object]
"""{key of a section, such as `verify.model`: its value}; None and False leave it as it is."""

MERGED = frozenset(("name", "split", "mix", "select", "output", "audit", "limits"))
"""The sections that `merge` uses, `limits` for `max_tokens`; others are of the merged folders."""


@options
@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration. Its sections may be given as dicts of their keys."""

    name: str = DEFAULT_NAME
    inputs: tuple[InputSection, ...] = ()
    normalize: NormalizeOptions = field(default_factory=NormalizeOptions)
    verify: VerifySection = field(default_factory=VerifySection)
    audit: AuditSection = field(default_factory=AuditSection)
    limits: LengthOptions = field(default_factory=LengthOptions)
    split: SplitOptions = field(default_factory=SplitOptions)
    select: SelectOptions = field(default_factory=SelectOptions)
    mix: Mapping[Pattern, float] = field(default_factory=dict)
    output: OutputOptions = field(default_factory=OutputOptions)

    @property
    def paths(self) -> list[Path | None]:
        """Returns the path of each input, or None for one that is not on this machine."""
        return [None if is_url(item.path.written) else item.path.located for item in self.inputs]

    @property
    def shares(self) -> dict[str, float]:
        """Returns {behaviour: target share} of `mix`."""
        return dict[str, float](self.mix.items())

    @property
    def audit_options(self) -> AuditOptions:
        """Returns the options for an audit of the dataset."""
        return replace(self.audit.options, mix=self.shares, tokenizer=self.verify.target)

    @property
    def merging(self) -> SelectOptions:
        """Returns the conditions of a merge: those of `select`, and `limits.max_tokens`."""
        where = self.select.where
        if (most := self.limits.max_tokens) is not None:
            tokens = replace(where.get(TOKENS, Condition()), max=Number(most))
            where = {**where, TOKENS: tokens}
        return replace(self.select, where=where)

    def with_keys(self, keys: Keys) -> Config:
        """Returns a copy with these keys of its sections."""
        config = self
        for key, value in keys.items():
            section, name = key.split(".")
            if value not in (None, False):
                made = replace(getattr(config, section), **{name: value})
                config = replace(config, **{section: made})
        return config

    def resolved(self) -> dict[str, Json]:
        """Returns all keys and values for the manifest; paths are as the user wrote them."""
        return cast("dict[str, Json]", plain(self))

    def contradictions(self) -> Iterator[str]:
        """Yields a message for each combination of options that contradict each other."""
        for at, item in enumerate(self.inputs):
            if isinstance(item.mapping, MappingSpec):
                yield from (f"inputs[{at}].mapping.{fault}" for fault in item.mapping.faults())
        if not self.output.formats:
            yield "output.formats: must name jsonl, parquet or both"
        if self.split.validation + self.split.test > 1:
            yield "split: validation and test add up to more than 1"
        if sum(self.mix.values()) > 1 + 1e-9:
            yield "mix: the shares add up to more than 1"
        yield from self.select.contradictions()
        if self.select.where.get(TOKENS, Condition()).max is not None:
            yield "select.where.tokens.max: is limits.max_tokens"
        lengths = self.limits
        if lengths.too_long != "reject" and lengths.max_tokens is None:
            yield f"limits.too_long: {lengths.too_long} needs limits.max_tokens"
        if lengths.too_long == "split" and self.normalize.untrained_turns == "reject":
            yield (
                "limits.too_long: split writes turns again in its windows: it needs"
                " normalize.untrained_turns: context, split or weight"
            )
        history, unit = self.normalize.history, self.normalize.unit
        if (
            history != "logged"
            and unit == "conversation"
            and self.normalize.untrained_turns != "weight"
        ):
            yield (
                f"normalize.history: {history} writes earlier turns that are not trained, of which"
                " there are none: it needs normalize.unit: query or turn, or"
                " normalize.untrained_turns: weight"
            )
        masked = [kind for kind in self.normalize.mask if kind != "rewound"]
        if "no_thought" in masked and self.normalize.reasoning == "drop":
            yield (
                "normalize.mask: no_thought needs normalize.reasoning: keep; without it turns are"
                " trained without their thoughts"
            )
        if masked and self.normalize.untrained_turns == "split":
            yield (
                f"normalize.mask: {masked[0]} needs normalize.untrained_turns: context, weight or"
                " reject; under split each sample would end before its first masked turn"
            )


def override(
    config: Config,
    *,
    inputs: Sequence[str] = (),
    format: str | None = None,  # noqa: A002 - the option's name
    mapping: str | MappingSpec | None = None,
    tools: Sequence[UserPath] = (),
    system: Sequence[UserPath] = (),
) -> Config:
    """Returns a copy with options of the command line; its inputs replace those of the file.

    An input keeps what the file says of its path, or of a folder that contains it. Raises
    UsageError if the file's other inputs have options that would apply to none of them.
    """
    chosen = _chosen(config.inputs, inputs) if inputs else config.inputs
    named = UserPath(mapping) if isinstance(mapping, str) else mapping
    options = {"format": format, "mapping": named, "tools": tuple(tools), "system": tuple(system)}
    given: dict[str, Any] = {name: value for name, value in options.items() if value}
    return replace(config, inputs=tuple(replace(item, **given) for item in chosen))


def _chosen(known: Sequence[InputSection], paths: Sequence[str]) -> tuple[InputSection, ...]:
    """Returns the inputs at these paths, with the options of the known ones. Raises UsageError."""
    chosen: list[InputSection] = []
    used: set[int] = set()
    unknown: list[str] = []
    for path in map(UserPath, paths):
        matches = [at for at, item in enumerate(known) if _contains(item.path, path)]
        if not matches:
            unknown.append(path.written)
            chosen.append(InputSection(path))
            continue
        nearest_to_it = max(matches, key=lambda at: len(str(known[at].path.located)))
        used.add(nearest_to_it)
        chosen.append(replace(known[nearest_to_it], path=path))
    for at, item in enumerate(known):
        given = [key for key in _OF_INPUTS if getattr(item, key) != _OF_INPUTS[key]]
        if unknown and at not in used and given:
            raise UsageError(
                f"inputs[{at}].{given[0]}: would apply to none of the inputs on the command line"
                f" ({', '.join(unknown)}): name {item.path.written!r}, or name no input"
            )
    return tuple(chosen)


_OF_INPUTS = {
    item.name: item.default for item in fields(InputSection) if item.name not in ("path", "weight")
}
"""{option of an input: its default}; a weight compares inputs of one file with each other."""


def _contains(known: UserPath, path: UserPath) -> bool:
    if is_url(known.written) or is_url(path.written) or "-" in (known.written, path.written):
        return known.written == path.written
    if known.written.startswith("hf://") or path.written.startswith("hf://"):
        return known.written == path.written
    whole, one = known.located.absolute(), path.located.absolute()
    return one == whole or whole in one.parents or one.resolve() == whole.resolve()
