"""Implements the witnesses: llama.cpp's template engine, and three readers of calls.

Each is a package that is imported when it is asked for (the extra `witness`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

from builder.conversation import Json
from builder.distribution import install_line
from builder.jsonio import loads
from builder.problem import OptionError
from builder.qwen3.dialect import Signatures, signatures
from builder.qwen3.style import Thoughts
from builder.qwen3.tokenizer import Target
from builder.verify.schemas import BrokenSchemaFault, violations
from builder.verify.witnesses.case import Case, NotAskedError, Witness, calls_fault

LONGEST = 1 << 16
"""Code points of the longest rendering: llama.cpp as WASM takes seconds for longer ones."""

_INSTALLS = {
    "llama.cpp": install_line("witness"),
    "sglang": (
        "pip install --no-deps llm-router-utils && pip install openai partial-json-parser msgspec"
        " pydantic mistral-common (it pins an older transformers)"
    ),
    "xgrammar": "pip install xgrammar (it needs torch)",
    "transformers": "pip install 'transformers>=5.13'",
}


def _module(witness: str, name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise OptionError(
            "witnesses", f" {witness}: not installed ({error}): {_INSTALLS[witness]}"
        ) from None


class LlamaCpp:
    """llama.cpp's own Jinja, compiled to WASM: renders the sample."""

    name = "llama.cpp"

    def __init__(self, target: Target) -> None:
        module = _module(self.name, "ggufdoctor.engines.llamacpp_engine")
        self._engine = module.LlamaCppEngine()
        if not self._engine.available:
            raise OptionError("witnesses", f" {self.name}: {self._engine.unavailable_reason}")
        self.version = f"build {self._engine.version}, ggufdoctor {version('ggufdoctor')}"
        self._target = target

    def fault(self, case: Case) -> str | None:
        """Returns the first place where its rendering differs."""
        if len(case.text) > LONGEST:
            raise NotAskedError(f"more than {LONGEST} code points")
        given: dict[str, Any] = {"messages": case.sample.rows, "add_generation_prompt": False}
        if self._target.style.thoughts is Thoughts.current:
            given["preserve_thinking"] = False  # a default server sets it
        given |= self._target.options
        if case.sample.tools:
            given["tools"] = list(case.sample.tools)
        rendered = self._engine.render(self._target.template, given)
        if rendered.error is not None:
            return f"it refuses: {rendered.error[:120]}"
        return None if rendered.text == case.text else _first(rendered.text, case.text)


def _first(rendered: str, text: str) -> str:
    pairs = enumerate(zip(rendered, text, strict=False))
    at = next((at for at, (one, two) in pairs if one != two), min(len(rendered), len(text)))
    return f"offset {at}: {rendered[at : at + 40]!r} instead of {text[at : at + 40]!r}"


class Sglang:
    """SGLang's parsers of calls, as extracted by llm-router-utils."""

    name = "sglang"

    def __init__(self, target: Target) -> None:
        base = "llm_router_utils.sglang.srt"
        is_json = target.style.dialect.plain
        kind, made = (
            ("qwen25", "Qwen25Detector") if is_json else ("qwen3_coder", "Qwen3CoderDetector")
        )
        detector = _module(self.name, f"{base}.function_call.{kind}_detector")
        self._tool = _module(self.name, f"{base}.entrypoints.openai.protocol").Tool
        self._detector: Callable[[], Any] = getattr(detector, made)
        logging.getLogger(f"{base}.function_call").setLevel(logging.CRITICAL)
        self.version = f"llm-router-utils {version('llm-router-utils')}"

    def fault(self, case: Case) -> str | None:
        """Returns the first call that is read differently."""
        for item in case.generated:
            read = self.read(item.body, case.sample.tools)
            calls = [(call.name, loads(call.parameters)) for call in read.calls]
            if fault := calls_fault(item.meant, calls):
                return fault
            if read.normal_text.strip() != item.turn.content.strip():
                return f"the text is read as {read.normal_text[:80]!r}"
        return None

    def read(self, text: str, definitions: Sequence[Json]) -> Any:
        """Returns what its parser makes of a model's text: `normal_text` and `calls`."""
        tools = [self._tool.model_validate(item) for item in definitions]
        return self._detector().detect_and_parse(text, tools)


_THOUGHT = {"open": "<think>", "close_pattern": r"</think>\s*", "content": "text"}
_JSON_CALLS = {
    "open_pattern": r"\s*<tool_call>",
    "close": "</tool_call>",
    "repeats": True,
    "content": "json",
}
_XML_CALLS = {
    "open_pattern": r"\s*<tool_call>\s*<function=(?P<name>[^\n>]+)>",
    "close_pattern": r"</tool_call>",
    "repeats": True,
    "content": "xml-inline",
    "content_args": {
        "tag_pattern": r"<parameter=(?P<key>[^>\n]+)>\n(?P<value>[\s\S]*?)\n</parameter>",
    },
    "transform": {
        "type": "function",
        "function": {"name": "{name}", "arguments": "{content}"},
    },
}


class Transformers:
    """The `parse_response` of transformers, with a response template for the dialect."""

    name = "transformers"

    def __init__(self, target: Target) -> None:
        self._target = target
        self.version = f"transformers {version('transformers')}"
        end = target.style.markers.end
        calls = _JSON_CALLS if target.style.dialect.plain else _XML_CALLS
        stop = end.replace("|", r"\|")
        self._schema = {
            "version": 1,
            "start_anchor": target.style.assistant,
            "fields": {
                "reasoning_content": _THOUGHT,
                "tool_calls": calls,
                "content": {"close_pattern": rf"\n*(?=<tool_call>)|{stop}", "content": "text"},
            },
        }
        if not hasattr(target.tokenizer, "parse_response"):
            raise OptionError("witnesses", f" {self.name}: too old: {_INSTALLS[self.name]}")

    def fault(self, case: Case) -> str | None:
        """Returns the first call that is read differently."""
        tools: Any = list(case.sample.tools) or None
        end = self._target.style.markers.end
        for item in case.generated:
            prompt = item.prefix[item.prefix.rindex(self._target.style.assistant) :]
            try:
                read: Any = self._target.tokenizer.parse_response(
                    item.response + end, self._schema, prefix=prompt, tools=tools
                )
            except Exception as error:  # any exception of the engine is its answer
                return f"it fails: {type(error).__name__}: {str(error)[:120]}"
            calls = [_function(call) for call in read.get("tool_calls") or ()]
            if fault := calls_fault(item.meant, calls):
                return fault
            if (read.get("content") or "").strip() != item.turn.content.strip():
                return f"the text is read as {str(read.get('content'))[:80]!r}"
        return None


def _function(call: Mapping[str, Any]) -> tuple[str, Json]:
    function = call.get("function", call)
    return str(function.get("name")), function.get("arguments")


class XGrammar:
    """xgrammar's structural tags, with which servers constrain what a model may write."""

    name = "xgrammar"

    def __init__(self, target: Target) -> None:
        self._xgrammar = _module(self.name, "xgrammar")
        self.version = f"xgrammar {version('xgrammar')}"
        self._model = "qwen_3" if target.style.dialect.plain else "qwen_3_5"
        info = self._xgrammar.TokenizerInfo([])
        self._compiler = self._xgrammar.GrammarCompiler(info, cache_enabled=False)
        self._grammar = lru_cache(maxsize=64)(self._compiled)

    def _compiled(self, definitions: tuple[str, ...]) -> Any:
        tag = self._xgrammar.get_model_structural_tag(
            self._model,
            [loads(text) for text in definitions],
            reasoning="disabled",
            any_order=True,
            exclude_special_tokens=False,
        )
        return self._compiler.compile_structural_tag(tag)

    def fault(self, case: Case) -> str | None:
        """Returns the first turn that its grammar would not let a model write."""
        tools: Any = case.sample.tools
        defined = zip(tools, case.sample.definitions, strict=True)
        known = {tool["function"]["name"]: text for tool, text in defined}
        for item in case.generated:
            for name, arguments in item.meant:
                _against_schema(known.get(name), arguments)
        try:
            grammar = self._grammar(case.sample.definitions)
        except Exception as error:  # a schema that it does not support
            raise NotAskedError(f"it refuses the definitions: {str(error)[:80]}") from None
        for item in case.generated:
            matcher = self._xgrammar.GrammarMatcher(grammar, terminate_without_stop_token=True)
            if matcher.accept_string(item.body) and matcher.is_completed():
                continue
            if self._model == "qwen_3_5" and (
                difference := _difference(item.meant, signatures(case.sample.definitions))
            ):
                raise NotAskedError(difference)
            called = ", ".join(name for name, _ in item.meant)
            return f"its grammar does not allow this turn (calls: {called[:80]})"
        return None


def _difference(meant: Sequence[tuple[str, Json]], known: Signatures) -> str | None:
    """Returns what its grammar for XML calls is known to refuse of these, or None.

    docs/differences.md says why the template's text is right.
    """
    for name, arguments in meant:
        if not isinstance(arguments, dict) or not arguments:
            return "its grammar has no call without arguments"
        schemas = known.get(name, {})
        if any(value and _is_open(schemas.get(key)) for key, value in arguments.items()):
            return "its grammar refuses elements of an array without `items`"
    return None


def _is_open(schema: Json) -> bool:
    """Returns whether a schema is that of an array, and says nothing about its elements."""
    return isinstance(schema, dict) and schema.get("type") == "array" and "items" not in schema


def _against_schema(definition: str | None, arguments: dict[str, Json]) -> None:
    """Raises NotAskedError for arguments that violate their schema, which a grammar enforces."""
    try:
        if definition is not None and list(violations(definition, arguments)):
            raise NotAskedError("arguments violate their schema")
    except BrokenSchemaFault:
        raise NotAskedError("the schema is broken") from None


WITNESSES: Mapping[str, Callable[[Target], Witness]] = {
    made.name: made for made in (LlamaCpp, Sglang, Transformers, XGrammar)
}
"""{name: makes the witness for a target; raises UsageError if it is not installed}."""
