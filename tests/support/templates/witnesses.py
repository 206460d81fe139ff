"""Other engines as witnesses: llama.cpp's template engine, and three readers of calls.

Each is a package that is imported when it is asked for; scripts/conformance.sh installs all.
"""

import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

import pytest

from builder.jsonio import loads
from builder.qwen3.calls import signatures
from builder.qwen3.flat import sent_back, to_dialogue
from builder.qwen3.templates import Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Call, Dialogue, Sample, Turn
from builder.verify.schemas import BrokenSchemaFault, violations


@dataclass(frozen=True, slots=True)
class Generated:
    """A trained turn as a model would write it, and what it means.

    prefix    the rendering up to the end of the generation prompt
    response  what follows, without the marker that ends the turn
    turn      what it means
    """

    prefix: str
    response: str
    turn: Turn

    @property
    def body(self):
        """The response after its thought, as a server's parser of calls gets it."""
        return self.response.rpartition("</think>")[2].lstrip("\n")

    @property
    def meant(self):
        """The calls: (name, arguments)."""
        return [(call.name, call.arguments) for call in self.turn.calls]


@dataclass(frozen=True, slots=True)
class Case:
    """A proven sample: its rendering, its structured form and its trained turns."""

    target: Target
    sample: Sample
    text: str
    dialogue: Dialogue
    generated: tuple[Generated, ...]


class NotAskedError(ValueError):
    """A sample that the engine cannot be asked about, with the reason."""


def case_of(sample, text, spans, target):
    """Returns the case of a proven sample; `spans` are those of its trained turns."""
    style = target.style
    dialogue = to_dialogue(sample, style)
    answers = [turn for turn in dialogue.turns if turn.role == "assistant"]
    generated = []
    for start, end in spans:
        ordinal = text.count(style.assistant, 0, start) - 1
        response = text[start:end].removesuffix(style.markers.end)
        generated.append(Generated(text[:start], response, answers[ordinal]))
    return Case(target, sample, text, dialogue, tuple(generated))


def is_same(one, two):
    """Returns whether two values are equal as JSON: true is not 1, the order of keys is none."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(is_same, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(is_same(one[key], two[key]) for key in one)
    return one == two


def calls_fault(meant, read):
    """Returns how the calls that an engine read differ from those that are meant, or None."""
    if len(meant) != len(read):
        return f"{len(read)} calls read, {len(meant)} meant"
    for (name, arguments), (other, values) in zip(meant, read, strict=True):
        if name != other:
            return f"the call {name[:40]!r} is read as {other[:40]!r}"
        if not is_same(arguments, values):
            return f"{name[:40]}: the arguments are read as {str(values)[:120]}"
    return None


def replayed(server, turn, style):
    """Returns a turn as the template renders it after it has been parsed and sent back."""
    if not turn.calls:
        return turn
    calls = tuple(Call.of(call.name, call.arguments) for call in turn.calls)
    return replace(sent_back(server, turn, style), calls=calls)


LONGEST = 1 << 16
"""Code points of the longest rendering: llama.cpp as WASM takes seconds for longer ones."""


class LlamaCpp:
    """llama.cpp's own Jinja, compiled to WASM: renders the sample."""

    name = "llama.cpp"

    def __init__(self, target):
        module = import_module("ggufdoctor.engines.llamacpp_engine")
        self._engine = module.LlamaCppEngine()
        if not self._engine.available:
            pytest.skip(self._engine.unavailable_reason)
        self.version = f"build {self._engine.version}, ggufdoctor {version('ggufdoctor')}"
        self._target = target

    def fault(self, case):
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


def _first(rendered, text):
    pairs = enumerate(zip(rendered, text, strict=False))
    at = next((at for at, (one, two) in pairs if one != two), min(len(rendered), len(text)))
    return f"offset {at}: {rendered[at : at + 40]!r} instead of {text[at : at + 40]!r}"


class Sglang:
    """SGLang's parsers of calls, as extracted by llm-router-utils."""

    name = "sglang"

    def __init__(self, target):
        base = "llm_router_utils.sglang.srt"
        is_json = target.style.dialect.plain
        kind, made = (
            ("qwen25", "Qwen25Detector") if is_json else ("qwen3_coder", "Qwen3CoderDetector")
        )
        detector = import_module(f"{base}.function_call.{kind}_detector")
        self._tool = import_module(f"{base}.entrypoints.openai.protocol").Tool
        self._detector = getattr(detector, made)
        logging.getLogger(f"{base}.function_call").setLevel(logging.CRITICAL)
        self.version = f"llm-router-utils {version('llm-router-utils')}"

    def fault(self, case):
        """Returns the first call that is read differently."""
        for item in case.generated:
            read = self.read(item.body, case.sample.tools)
            calls = [(call.name, loads(call.parameters)) for call in read.calls]
            if fault := calls_fault(item.meant, calls):
                return fault
            if read.normal_text.strip() != item.turn.content.strip():
                return f"the text is read as {read.normal_text[:80]!r}"
        return None

    def read(self, text, definitions):
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

    def __init__(self, target):
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

    def fault(self, case):
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


def _function(call):
    function = call.get("function", call)
    return str(function.get("name")), function.get("arguments")


class XGrammar:
    """xgrammar's structural tags, with which servers constrain what a model may write."""

    name = "xgrammar"

    def __init__(self, target):
        self._xgrammar = import_module("xgrammar")
        self.version = f"xgrammar {version('xgrammar')}"
        self._model = "qwen_3" if target.style.dialect.plain else "qwen_3_5"
        info = self._xgrammar.TokenizerInfo([])
        self._compiler = self._xgrammar.GrammarCompiler(info, cache_enabled=False)
        self._grammar = lru_cache(maxsize=64)(self._compiled)

    def _compiled(self, definitions):
        tag = self._xgrammar.get_model_structural_tag(
            self._model,
            [loads(text) for text in definitions],
            reasoning="disabled",
            any_order=True,
            exclude_special_tokens=False,
        )
        return self._compiler.compile_structural_tag(tag)

    def fault(self, case):
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


def _difference(meant, known):
    """Returns what its grammar for XML calls is known to refuse of these, or None.

    docs/parity.md says why the template's text is right.
    """
    for name, arguments in meant:
        if not isinstance(arguments, dict) or not arguments:
            return "its grammar has no call without arguments"
        schemas = known.get(name, {})
        if any(value and _is_open(schemas.get(key)) for key, value in arguments.items()):
            return "its grammar refuses elements of an array without `items`"
    return None


def _is_open(schema):
    """Returns whether a schema is that of an array, and says nothing about its elements."""
    return isinstance(schema, dict) and schema.get("type") == "array" and "items" not in schema


def _against_schema(definition, arguments):
    """Raises NotAskedError for arguments that violate their schema, which a grammar enforces."""
    try:
        if definition is not None and list(violations(definition, arguments)):
            raise NotAskedError("arguments violate their schema")
    except BrokenSchemaFault:
        raise NotAskedError("the schema is broken") from None


WITNESSES = {made.name: made for made in (LlamaCpp, Sglang, Transformers, XGrammar)}
"""{name: makes the witness for a target; raises UsageError if it is not installed}."""
