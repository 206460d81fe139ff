"""Compares three renderers on real conversations, for every known chat template.

scripts/templates.py LOGS [--count 300] [--only NAME]: builds conversations from the logs for each
template, and renders each with Hugging Face's template, our own renderer, and llama.cpp's Jinja (as
WASM, from the package ggufdoctor, if that is installed). Ends with 1 if two of them differ.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builder.conversation import Conversation
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.normalize.units import examples
from builder.qwen3.flat import flatten
from builder.qwen3.reference import Reference
from builder.qwen3.templates import Thoughts
from builder.qwen3.tokenizer import load
from builder.readers import read_events, readers, recognise
from builder.readers.discovery import find_sources
from builder.sources.source import Source
from builder.verify.verifier import Verifier

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.templates.published import FAMILY, SIBLINGS, XML, text_of
from support.templates.targets import extended_folder

LONGEST = 1 << 16
"""Code points of the longest conversation: llama.cpp as WASM takes seconds for longer ones."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    conversations = list(_conversations(arguments.logs))
    random.Random(0).shuffle(conversations)  # noqa: S311 - no secret
    engine = _engine()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in {**FAMILY, **XML, **SIBLINGS}:
            if arguments.only in (None, name):
                failed += _compare(name, conversations, arguments.count, engine, Path(scratch))
    return 1 if failed else 0


def _engine() -> Any:
    try:
        from ggufdoctor.engines.llamacpp_engine import LlamaCppEngine  # noqa: PLC0415 - optional
    except ImportError:
        print("llama.cpp: not compared (pip install ggufdoctor)")
        return None
    return LlamaCppEngine()


def _conversations(logs: str) -> Iterator[Conversation]:
    for source in find_sources(logs):
        if not isinstance(source, Source):
            continue
        claims = list(recognise(source))
        if len(claims) == 1:
            yield from (
                event
                for event in read_events(readers()[claims[0]], source)
                if isinstance(event, Conversation)
            )


def _compare(
    name: str, conversations: list[Conversation], count: int, engine: Any, scratch: Path
) -> int:
    try:
        text = text_of(name)
    except BaseException as error:  # pytest.skip, which is no Exception
        print(f"{name}: text not found: {error}")
        return 0
    folder = extended_folder(scratch / name.replace(" ", "_"), text)
    target = load(str(Reference(folder)))
    verifier = Verifier(target)
    options = NormalizeOptions(
        reasoning="keep", style=target.style, added_tokens=target.added_tokens
    )
    codes: Counter[str] = Counter()
    kept = equal = compared = 0
    for conversation in conversations:
        if kept == count:
            break
        dialogue = normalise(conversation, options).dialogue
        if dialogue is None:
            continue
        for example in examples(dialogue, "conversation", target.style):
            sample = flatten(example.dialogue, target.style)
            verdict = verifier.check(sample, example.dialogue, example.targets)
            codes.update({finding.code for finding in verdict.findings})
            if verdict.findings or len(verdict.text) > LONGEST:
                continue
            kept += 1
            if engine is not None:
                compared += 1
                context = {"messages": sample.rows, "add_generation_prompt": False}
                if target.style.thoughts is Thoughts.current:  # llama.cpp's server sets it
                    context["preserve_thinking"] = False
                if sample.tools:
                    context["tools"] = list(sample.tools)
                found = engine.render(text, context)
                equal += found.text == verdict.text
                if found.text != verdict.text and compared - equal < 3:
                    what = found.error or _first(found.text, verdict.text)
                    print(f"  differs: {conversation.id} {what}")
    bugs = {code: codes[code] for code in ("spec", "structured", "inverse") if codes[code]}
    print(
        f"{name}: {kept} conversations, Hugging Face = ours in all; llama.cpp equal in"
        f" {equal} of {compared}; rejected: {dict(codes)}",
        flush=True,
    )
    return bool(bugs) or equal < compared


def _first(one: str, two: str) -> str:
    pairs = enumerate(zip(one, two, strict=False))
    at = next((at for at, (a, b) in pairs if a != b), min(len(one), len(two)))
    return f"at {at}: {one[max(at - 30, 0) : at + 40]!r} / {two[max(at - 30, 0) : at + 40]!r}"


if __name__ == "__main__":
    sys.exit(main())
