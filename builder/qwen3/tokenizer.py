"""Loads the tokenizer and chat template that a dataset is verified against."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.conversation import Json
from builder.credentials import reason
from builder.jsonio import loads
from builder.parallel.garbage import keep_loaded
from builder.problem import UsageError
from builder.qwen3.constants import KNOWN_TEMPLATES, STRUCTURE_TOKENS, TOOLS_BEGIN
from builder.qwen3.style import Style, Thoughts
from builder.qwen3.tokens import Encoder, TokenSequence, TokenTable, fast_backend, fastokens
from builder.sample import Sample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

EMBEDDED = "qwen3"
_ASSETS = files("builder.qwen3") / "assets"
_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_FETCHED = (*_FILES, "config.json", "vocab.json", "merges.txt", "special_tokens_map.json")

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")


@dataclass(frozen=True)
class Target:
    """A tokenizer with its chat template. `files` maps the names of its files to their sha256.

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
    def template_name(self) -> str:
        """Returns the template's known name, or "unknown"."""
        return KNOWN_TEMPLATES.get(self.template_sha256, "unknown")

    @cached_property
    def style(self) -> Style:
        """Returns the style of the template, determined by rendering a few messages."""
        query = {"role": "user", "content": "a"}
        thought = {"role": "assistant", "content": "<think>\nb\n</think>\n\nc"}
        answered = self.render([query, {"role": "assistant", "content": "b"}], None)
        thoughts = Thoughts.verbatim
        if "<think>" in answered:
            thoughts = Thoughts.hybrid
        elif "<think>" not in self.render([query, thought, query], None):
            thoughts = Thoughts.last
            if "<think>" not in self.render([query, thought], None):
                thoughts = Thoughts.dropped
        begin, end = "<|im_start|>system\n", "<|im_end|>\n"
        bare = self.render([query], None).partition("<|im_start|>user")[0]
        tool: Json = {"type": "function", "function": {"name": "a", "parameters": {}}}
        lead = self.render([query], [tool]).partition(TOOLS_BEGIN)[0].removeprefix(begin)
        default = bare.removeprefix(begin).removesuffix(end) if bare else None
        return Style(thoughts, default, lead)

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
        before = self.render(probe, None)
        prompts = {}
        for mode, thinking in (("thinking", True), ("non-thinking", False)):
            whole = self.render(probe, None, add_generation_prompt=True, enable_thinking=thinking)
            prompts[mode] = whole.removeprefix(before)
        return prompts

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

    def render(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[Json] | None, **options: Any
    ) -> str:
        """Renders messages with the tokenizer's `apply_chat_template`. Raises its exceptions."""
        definitions: Any = list(tools) if tools else None
        text = self.tokenizer.apply_chat_template(
            list(messages), tools=definitions, tokenize=False, **options
        )
        assert isinstance(text, str)
        return text

    def render_all(
        self, conversations: Sequence[Sequence[dict[str, Any]]], tools: Sequence[Json]
    ) -> list[str]:
        """Renders conversations with the same tools. Raises like `render`."""
        definitions: Any = list(tools) if tools else None
        texts: Any = self.tokenizer.apply_chat_template(
            [list(messages) for messages in conversations], tools=definitions, tokenize=False
        )
        assert isinstance(texts, list)
        return list(texts)

    def render_sample(self, sample: Sample) -> str:
        """Renders a sample. Raises like `render`."""
        messages = [{"role": role, "content": content} for role, content in sample.messages]
        return self.render(messages, sample.tools)

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
    """Loads a tokenizer: "qwen3" (embedded), a folder, or a Hub id with an optional @revision.

    The embedded one is loaded on first use. Raises UsageError if it cannot be found or reached, has
    no chat template, or is not of the Qwen3 family (control tokens, calls as JSON).
    """
    _quiet()
    if name == EMBEDDED:
        return _embedded()
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "tokenizer.json").is_file():
            # Without it, transformers returns a tokenizer with an empty vocabulary.
            raise UsageError(f"tokenizer {name!r}: the folder has no tokenizer.json")
        return _load(name, folder)
    if name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1:
        raise UsageError(f"tokenizer {name!r}: no such folder")
    return _load(name, _fetch(name))


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
        hashes = _hashes(folder)
    added = configured["added_tokens_decoder"]
    tokens = tuple(added[number]["content"] for number in sorted(added, key=int))
    return Target(EMBEDDED, hashes, configured["chat_template"], tokens, _open, _open_fast)


def _open() -> PreTrainedTokenizerBase:
    # AutoTokenizer takes half a second longer, because it imports all model configurations. Its
    # tokenizer is a fifth faster, which matters only if fastokens is not installed.
    by = "PreTrainedTokenizerFast" if fastokens() else "AutoTokenizer"
    with as_file(_ASSETS) as folder:
        return _pretrained(EMBEDDED, folder, by)


def _open_fast() -> Any:
    with as_file(_ASSETS / "tokenizer.json") as path:
        return fast_backend(path)


def _load(name: str, folder: Path) -> Target:
    tokenizer = _pretrained(name, folder)
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
            " later); this format has JSON calls"
        )
    added = {token.content for token in tokenizer.added_tokens_decoder.values()}
    missing = [
        token
        for token in STRUCTURE_TOKENS
        if token not in added or ("think" not in token and token not in template)
    ]
    if missing:
        raise UsageError(
            f"tokenizer {name!r}: not of the Qwen3 family: no {', '.join(missing)}"
            " in its tokens and template"
        )
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
    )
    try:
        _ = target._table
    except ValueError as error:
        raise UsageError(f"tokenizer {name!r}: cannot be used: {error}") from None
    try:
        _ = target.style, target.generation_prompts
    except Exception as error:  # a template of any origin may raise anything
        raise UsageError(f"tokenizer {name!r}: its chat template fails: {reason(error)}") from None
    return target


def _pretrained(name: str, folder: Path, by: str = "AutoTokenizer") -> PreTrainedTokenizerBase:
    try:
        import transformers  # noqa: PLC0415 - a second, only when needed

        loaded = getattr(transformers, by).from_pretrained(
            str(folder), trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # a broken installation, or corrupt files
        raise UsageError(f"tokenizer {name!r}: cannot be loaded: {reason(error)}") from None
    tokenizer: PreTrainedTokenizerBase = loaded
    return tokenizer


def _quiet() -> None:
    """Silences transformers and the Hub client, which read these variables when imported."""
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _hashes(folder: Path) -> dict[str, str]:
    paths = [folder / name for name in sorted(_FILES)]
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()
    }


@cache
def target_for(tokenizer: str) -> Target:
    """Returns this process's tokenizer, loaded once. Raises UsageError like `load`."""
    return load(tokenizer)
