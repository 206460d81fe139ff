"""Loading a tokenizer with a part of transformers gives what the whole of it gives."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from builder.parallel.host import own_process
from builder.qwen3 import tokenizer
from builder.qwen3.tokenizer import load

if sys.argv[1] != "library":
    own_process()
if sys.argv[1] == "other version":
    tokenizer._MODULE = "transformers.no_such_module"
target = load()
tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
print(repr(target.render(messages, tools)), target.tokenizer.encode("caf\\u00e9 <|im_end|>"))
print("transformers" in sys.modules)
import transformers

print(type(target.tokenizer) is transformers.PreTrainedTokenizerFast, transformers.AutoTokenizer)
"""


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_part_of_transformers_renders_like_the_whole_and_leaves_it_importable():
    rendered, is_imported, same = run("library")
    assert is_imported == "True", "a caller's program imports the library as everybody does"
    assert run("own process") == [rendered, "False", same]
    assert run("other version") == [rendered, "True", same]
    assert same.startswith("True")
