"""vLLM's own parsers of calls, on the CPU and without its dependencies.

vLLM is a package of a third of a gigabyte that needs CUDA. Its parsers are pure Python, so they are
imported from the wheel as it is, and every other module of vLLM is an empty one that has any name.
"""

import copy
import importlib.abc
import importlib.machinery
import json
import sys
import types
import zipimport
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from support.templates.published import VLLM, package

REAL = {
    f"vllm.{name}"
    for name in (
        "parser.abstract_parser",
        "parser.engine.adapters",
        "parser.engine.events",
        "parser.engine.incremental_lexer",
        "parser.engine.parser_engine",
        "parser.engine.parser_engine_config",
        "parser.engine.streaming_parser_engine",
        "parser.engine.token_id_scanner",
        "parser.qwen3",
        "parser.utils",
        "tool_parsers.abstract_tool_parser",
        "tool_parsers.hermes_tool_parser",
        "tool_parsers.streaming",
        "tool_parsers.tool_strict_level",
        "tool_parsers.utils",
    )
}
"""Modules that are what the wheel has."""


class Anything:
    """Stands for a class of a module that is left out: an object with the values it is given."""

    id = type = content = role = reasoning = name = arguments = None

    def __init__(self, *_, **values):
        self.__dict__.update(values)

    def __class_getitem__(cls, _):
        return cls


class Empty(types.ModuleType):
    """A module of vLLM that is left out."""

    def __init__(self, name):
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in {"init_logger", "envs"}:
            value: Any = MagicMock()
        elif name[0].isupper():
            value = type(name, (Anything,), {})
        else:
            value = _nothing
        setattr(self, name, value)
        return value


def _nothing(*_, **__):
    return None


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of vLLM."""

    def __init__(self, wheel):
        self.wheel = wheel

    def find_spec(self, name, _=None, __=None):
        """Returns where a module is, if it is one of vLLM."""
        if name.partition(".")[0] != "vllm":
            return None
        if name in REAL:
            folder = "/".join(name.split(".")[:-1])
            return zipimport.zipimporter(f"{self.wheel}/{folder}").find_spec(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        """Makes an empty module."""
        return Empty(spec.name)

    def exec_module(self, module):
        """Leaves it empty."""


@cache
def parsers():
    """Returns the classes (of `hermes`, of `qwen3_coder`, of a tool); skips without the wheel.

    They import more while they parse, so the modules stay in this process.
    """
    sys.meta_path.insert(0, Finder(package(VLLM)))
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam
    from vllm.parser.qwen3 import Qwen3Parser
    from vllm.tool_parsers.hermes_tool_parser import Hermes2ProToolParser

    return Hermes2ProToolParser, Qwen3Parser, ChatCompletionToolsParam


@cache
def _quick(tokenizer):
    """Returns a copy that makes its vocabulary once: each parser asks for it."""
    made = copy.copy(tokenizer)
    vocabulary = tokenizer.get_vocab()
    made.get_vocab = lambda: vocabulary
    return made


def read(tokenizer, text, definitions, *, is_json):
    """Returns what vLLM makes of a model's text after its thought: (content, calls)."""
    hermes, qwen3, tool = parsers()
    functions = (item["function"] for item in definitions)
    tools = [
        tool(
            type="function",
            function=SimpleNamespace(name=item["name"], parameters=item.get("parameters")),
        )
        for item in functions
    ]
    request = SimpleNamespace(
        tools=tools,
        tool_choice="auto",
        skip_special_tokens=False,
        include_reasoning=True,
        chat_template_kwargs={},
    )
    options = {} if is_json else {"chat_template_kwargs": {"enable_thinking": False}}
    parser = (hermes if is_json else qwen3)(_quick(tokenizer), tools, **options)
    found = parser.extract_tool_calls(text, request)
    calls = [(item.function.name, json.loads(item.function.arguments)) for item in found.tool_calls]
    return found.content or "", calls
