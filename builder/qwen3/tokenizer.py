"""Loads the tokenizer and chat template that a dataset is verified against."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.conversation import Json
from builder.credentials import reason
from builder.jsonio import dumps, loads
from builder.parallel.host import keep_loaded
from builder.problem import UsageError
from builder.qwen3.constants import STRUCTURE_TOKENS
from builder.qwen3.parity import MODES
from builder.qwen3.pretrained import pretrained
from builder.qwen3.probe import UnsupportedTemplate, dialect_name, style_of
from builder.qwen3.reference import EMBEDDED, Reference, is_path, reference
from builder.qwen3.style import CHATML, Style
from builder.qwen3.template_file import checked_options, template_text
from builder.qwen3.templates import QWEN3_5_VOCABULARY, TEMPLATES, vocabulary_of
from builder.qwen3.tokens import Encoder, TokenSequence, TokenTable, fast_backend, fastokens
from builder.qwen3.trial import excess
from builder.sample import Sample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_ASSETS = files("builder.qwen3") / "assets"
_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_FETCHED = (*_FILES, "config.json", "vocab.json", "merges.txt", "special_tokens_map.json")

Control = tuple[tuple[int, str], ...]
"""(offset, token) of the control tokens of a rendering, in order."""

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")


@dataclass(frozen=True)
class Target:
    """A tokenizer with a chat template. `files` maps the names of its files to their sha256.

    `reference` is the text that `load` made it from, `options` are passed to every rendering.
    `loaded` returns the tokenizer; loading the embedded one takes a second, so it is done on first
    use. `fast` loads the same one with fastokens; it returns None if that is not installed.
    """

    name: str
    files: dict[str, str]
    template: str
    added_tokens: tuple[str, ...]
    """The tokens that are matched anywhere in a text, in the order of their ids."""
    loaded: Callable[[], PreTrainedTokenizerBase]
    fast: Callable[[], Any]
    reference: str = EMBEDDED
    options: Mapping[str, Json] = field(default_factory=dict)
    missing: str = ""
    """Why its tokens are not those of the template's model, and how to get these; "": they are.

    Then only the text is verified: counts of tokens are estimates, and ids mean nothing.
    """

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The Hugging Face tokenizer, loaded on first use. Raises UsageError if that fails."""
        tokenizer = self.loaded()
        keep_loaded()
        return tokenizer

    @cached_property
    def template_sha256(self) -> str:
        """Returns the sha256 of the chat template's text."""
        return hashlib.sha256(self.template.encode("utf-8")).hexdigest()

    @property
    def template_key(self) -> str:
        """Identifies the template and its options: the sha256, and the options if there are any."""
        options = dumps(dict(self.options)) if self.options else ""
        return self.template_sha256 + options

    @property
    def template_name(self) -> str:
        """Returns the template's known name, or "unknown"."""
        known = TEMPLATES.get(self.template_sha256)
        return known.name if known else "unknown"

    @property
    def model(self) -> str:
        """Returns a model repository that carries the template; "MODEL" for an unknown text."""
        known = TEMPLATES.get(self.template_sha256)
        return known.model if known else "MODEL"

    @cached_property
    def style(self) -> Style:
        """Returns the behaviour of the template with the options of this target.

        It is known, or else determined by rendering a few messages. Raises UnsupportedTemplate, and
        whatever a template raises.
        """
        known = TEMPLATES.get(self.template_sha256)
        return known.style if known and not self.options else style_of(self.render)

    @cached_property
    def renders_late_system(self) -> bool:
        """Returns whether a system message after the first turn is rendered as a system turn."""
        texts = ("a", "b", "c", "d")
        roles = ("user", "assistant", "system", "user")
        messages = [
            {"role": role, "content": text} for role, text in zip(roles, texts, strict=True)
        ]
        try:
            text = self.render(messages, None)
        except Exception:  # some templates refuse such messages
            return False
        return "<|im_start|>system\nc<|im_end|>\n<|im_start|>user\nd<|im_end|>" in text

    @cached_property
    def generation_prompts(self) -> dict[str, str]:
        """Returns the generation prompt of each mode of inference."""
        probe = [{"role": "user", "content": "a"}]
        prompts = {}
        for mode, thinking in MODES.items():
            before = self.render(probe, None, enable_thinking=thinking)
            whole = self.render(probe, None, add_generation_prompt=True, enable_thinking=thinking)
            prompts[mode] = whole.removeprefix(before)
        return prompts

    @cached_property
    def parity_prompts(self) -> dict[str, str]:
        """Returns the generation prompts of the modes in which a server renders the same context.

        A template may state the mode in the system turn: then only one of them can agree.
        """
        probe = [{"role": "user", "content": "a"}]
        plain = self.render(probe, None)
        return {
            mode: self.generation_prompts[mode]
            for mode, thinking in MODES.items()
            if self.render(probe, None, enable_thinking=thinking) == plain
        }

    @cached_property
    def _table(self) -> TokenTable:
        return TokenTable(self.tokenizer.backend_tokenizer)

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self.tokenizer.backend_tokenizer, self.fast)

    def prepare(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Loads everything that is otherwise loaded on first use. Leaves no thread running.

        `meanwhile` is called while fastokens loads, which releases the interpreter.
        """
        with ThreadPoolExecutor(1) as background:
            fast = background.submit(self.fast)
            meanwhile()
            _ = self._table, self.style, self.generation_prompts
        self._encoder.use(fast.result())

    def expect_much(self) -> None:
        """Loads fastokens now: more than WORTH_LOADING code points are going to be encoded.

        That saves a fifth of the CPU time of verifying 17 MB, since loading at WORTH_LOADING takes
        as long as all that was encoded until then.
        """
        self._encoder.load()

    def render(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[Json] | None, **options: Any
    ) -> str:
        """Renders messages with the tokenizer's `apply_chat_template`. Raises its exceptions."""
        definitions: Any = list(tools) if tools else None
        text = self.tokenizer.apply_chat_template(
            list(messages), tools=definitions, tokenize=False, **{**self.options, **options}
        )
        assert isinstance(text, str)
        return text

    @property
    def _fixed(self) -> dict[str, Any]:
        return dict(self.options)

    def render_all(
        self, conversations: Sequence[Sequence[dict[str, Any]]], tools: Sequence[Json]
    ) -> list[str]:
        """Renders conversations with the same tools. Raises like `render`."""
        definitions: Any = list(tools) if tools else None
        texts: Any = self.tokenizer.apply_chat_template(
            [list(messages) for messages in conversations],
            tools=definitions,
            tokenize=False,
            **self._fixed,
        )
        assert isinstance(texts, list)
        return list(texts)

    def render_sample(self, sample: Sample) -> str:
        """Renders a sample. Raises like `render`."""
        return self.render(sample.rows, sample.tools)

    @cached_property
    def _is_complete(self) -> bool:
        return set(STRUCTURE_TOKENS) <= set(self.added_tokens)

    def tokens_in(self, control: Control) -> Control:
        """Returns those marks of a rendering's structure that are tokens of this tokenizer."""
        if self._is_complete and self.style.markers == CHATML:
            return control
        return tuple(item for item in control if item[1] in self.added_tokens)

    def encode(self, text: str) -> TokenSequence:
        """Tokenises a rendering without adding special tokens."""
        return TokenSequence(text, self._encoder(text), self._table)

    def decode(self, ids: list[int]) -> str:
        """Decodes ids, control tokens included, without clean-up."""
        text = self.tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=False)
        assert isinstance(text, str)
        return text

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Returns [start, end) of each token in code points; tokens may share a character."""
        encoding = self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        offsets: list[tuple[int, int]] = encoding.offsets
        return offsets


def load(name: str = EMBEDDED) -> Target:
    """Loads a target: a tokenizer, with another chat template or options (`reference`).

    The tokenizer is "qwen3" (embedded), a folder, or a Hub id with an optional @revision. The
    embedded one is loaded on first use. Raises UsageError if it cannot be found or reached, or if
    its chat template is missing or not one of a target.
    """
    target = reference(name)
    if target == Reference():
        return _embedded()
    folder = Path(target.tokenizer).expanduser()
    if target.tokenizer == EMBEDDED:
        with as_file(_ASSETS) as assets:
            return _load(name, target, assets)
    if folder.is_dir():
        if not (folder / "tokenizer.json").is_file():
            # Without it, transformers returns a tokenizer with an empty vocabulary.
            raise UsageError(f"tokenizer {target.tokenizer!r}: the folder has no tokenizer.json")
        return _load(name, target, folder)
    if is_path(target.tokenizer):
        raise UsageError(f"tokenizer {target.tokenizer!r}: no such folder")
    return _load(name, target, _fetch(target.tokenizer))


def _fetch(name: str) -> Path:
    """Returns the folder in the Hub client's cache, after downloading the tokenizer if needed.

    One request for all files fails fast if the Hub cannot be reached; transformers requests the
    files one by one and retries for most of a minute.
    """
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - only for Hub ids

    repository, _, revision = name.partition("@")
    try:
        return Path(
            snapshot_download(repository, revision=revision or None, allow_patterns=list(_FETCHED))
        )
    except Exception as error:  # the client raises many types if a tokenizer cannot be downloaded
        close = difflib.get_close_matches(name, [EMBEDDED], n=1)
        hint = f" (did you mean {EMBEDDED!r}?)" if close else ""
        raise UsageError(
            f"tokenizer {name!r}: no such folder{hint}; on the Hub: {hub_reason(error)}"
        ) from None


def hub_reason(error: Exception) -> str:
    """Returns in one line why the Hub client failed; its own messages have paragraphs."""
    from huggingface_hub import errors  # noqa: PLC0415 - only for Hub ids

    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, errors.OfflineModeIsEnabled):
        return "not looked up, since offline mode is enabled (HF_HUB_OFFLINE)"
    fault = _ERRNO.sub("", reason(cause, 120))
    known: tuple[tuple[type[Exception], str], ...] = (
        (errors.HFValidationError, "this is not the form of an id (NAME or OWNER/NAME)"),
        (errors.GatedRepoError, "access must be requested on its page, and needs a token"),
        (errors.RepositoryNotFoundError, "no such repository, or no token for a private one"),
        (errors.RevisionNotFoundError, "no such revision"),
        (errors.LocalEntryNotFoundError, f"it cannot be reached: {fault}"),
    )
    return next((text for kind, text in known if isinstance(error, kind)), fault)


def _embedded() -> Target:
    """Returns the embedded tokenizer: its configuration now, everything else on first use."""
    with as_file(_ASSETS) as folder:
        configured: Any = loads((folder / "tokenizer_config.json").read_bytes())
        template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
        hashes = _hashes(folder)
    added = configured["added_tokens_decoder"]
    tokens = tuple(added[number]["content"] for number in sorted(added, key=int))
    return Target(EMBEDDED, hashes, template, tokens, _open, _open_fast)


def _open() -> PreTrainedTokenizerBase:
    with as_file(_ASSETS) as folder:
        # Fast enough if fastokens encodes.
        return pretrained(EMBEDDED, folder, plain=fastokens() is not None)


def _open_fast() -> Any:
    with as_file(_ASSETS / "tokenizer.json") as path:
        return fast_backend(path)


def _load(ref: str, wanted: Reference, folder: Path) -> Target:
    name = wanted.tokenizer
    tokenizer = pretrained(name, folder)
    own = tokenizer.chat_template
    texts = list(own.values()) if isinstance(own, dict) else [own]
    template = own.get("default") if isinstance(own, dict) else own
    if wanted.chat_template is not None:
        template = template_text(wanted.chat_template, [text for text in texts if text])
        tokenizer.chat_template = template
    if not isinstance(template, str) or not template.strip():
        raise UsageError(f"tokenizer {name!r}: has no chat template")
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(f"tokenizer {name!r}: has no tokenizer.json")
    tokenizer.backend_tokenizer.no_truncation()  # a saved tokenizer may truncate its input
    tokenizer.backend_tokenizer.no_padding()
    tokens = tokenizer.added_tokens_decoder
    target = Target(
        name,
        _hashes(folder),
        template,
        tuple(tokens[number].content for number in sorted(tokens)),
        lambda: tokenizer,
        lambda: fast_backend(tokenizer.backend_tokenizer.to_str()),
        ref,
        checked_options(wanted.options, template),
    )
    try:
        _ = target._table
    except ValueError as error:
        raise UsageError(f"tokenizer {name!r}: cannot be used: {error}") from None
    _check(target)
    ids = {tokens[number].content: number for number in tokens}
    return replace(target, missing=_missing(target, wanted, ids))


def _check(target: Target) -> None:
    """Raises UsageError if the template or the tokens are not those of a target."""
    name = target.name
    if (dialect := dialect_name(target.template)) is not None:
        raise UsageError(
            f"tokenizer {name!r}: its template is of another dialect, {dialect}; a target writes"
            " calls as JSON or <function=…> in <tool_call> (docs/templates.md)"
        )
    absent = [
        token for token in STRUCTURE_TOKENS if "think" not in token and token not in target.template
    ]
    if absent and CHATML.begin in target.template:
        raise UsageError(
            f"tokenizer {name!r}: not of the Qwen3 family: no {', '.join(absent)} in its template"
        )
    unknown = target.template_sha256 not in TEMPLATES
    if unknown and (fault := excess(target.template, target.options)) is not None:
        raise UsageError(f"tokenizer {name!r}: its chat template is refused: {fault}")
    try:
        _ = target.style, target.generation_prompts
    except UnsupportedTemplate as error:
        raise UsageError(f"tokenizer {name!r}: its chat template is no target: {error}") from None
    except Exception as error:  # a template of any origin may raise anything
        raise UsageError(f"tokenizer {name!r}: its chat template fails: {reason(error)}") from None


def _missing(target: Target, wanted: Reference, ids: Mapping[str, int]) -> str:
    """Returns `Target.missing`."""
    known = TEMPLATES.get(target.template_sha256)
    expected = known.vocabulary if known is not None else ""
    if known is None and wanted.chat_template is not None and target.style.tools.first:
        expected = QWEN3_5_VOCABULARY  # only the models from Qwen3.5 on write definitions first
    own = vocabulary_of(ids)
    marks = (*target.style.markers.tokens, *STRUCTURE_TOKENS)
    split = any(mark in target.template and mark not in ids for mark in marks)
    if (not split or own == "qwen2.5") and (not expected or not own or expected == own):
        return ""
    whose = target.model if known is not None else "the chat template's model"
    return (
        f"the tokenizer of {whose} is missing (the one at hand has other tokens): only the"
        " text is verified, and counts of tokens are estimates. To get it: `hf download"
        f" {target.model} tokenizer.json tokenizer_config.json --local-dir tokenizer`, then"
        " `--tokenizer tokenizer`"
    )


def _hashes(folder: Path) -> dict[str, str]:
    paths = [folder / name for name in sorted(_FILES)]
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()
    }


@cache
def target_for(tokenizer: str) -> Target:
    """Returns this process's tokenizer, loaded once. Raises UsageError like `load`."""
    return load(tokenizer)
