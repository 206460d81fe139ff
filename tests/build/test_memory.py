"""Memory and time of one long record: it is built in a process of its own."""

import json
import subprocess
import sys

import pytest
from places import ROOT

pytest.importorskip("resource", reason="the system does not say how much memory a process took")

LONG = 2_000_000
FIXED_BYTES = 120_000_000
"""Memory that does not grow with the text: caches, and pages that the allocator keeps."""
BYTES_PER_CODE_POINT = 60
MEASURE = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "builder", *sys.argv[1:]])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(done.returncode, peak * (1 if sys.platform == "darwin" else 1024))
"""

TEXTS = {
    "words": "return the value of foo_bar42 in path/to/file.py, ",
    "ansi": "\x1b[31m\x1b[0m",
    "digits": "31415926535 ",
    "wide": "\u65e5\u672c\u8a9e\u3002 ok ",
}


def peak(folder, text, answer):
    """Returns the peak memory in bytes of a build of one row."""
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
    log = folder / "log.jsonl"
    log.write_text(json.dumps({"messages": messages}) + "\n")
    command = ["build", str(log), "-o", str(folder / "out"), "-q", "--fresh", "--workers", "1"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=ROOT,
    )
    code, size = done.stdout.split()
    assert code == "0", done.stderr
    return int(size)


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    return peak(tmp_path_factory.mktemp("little"), "Hello.", "Hello.")


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEXTS)
def test_a_long_text_takes_a_bounded_amount_of_memory_for_each_code_point(tmp_path, little, kind):
    text = TEXTS[kind] * (LONG // len(TEXTS[kind]))
    assert peak(tmp_path, text, "Yes.") - little < FIXED_BYTES + BYTES_PER_CODE_POINT * len(text)


@pytest.mark.slow
def test_a_long_answer_takes_no_more_memory(tmp_path, little):
    text = TEXTS["words"] * (LONG // len(TEXTS["words"]))
    assert peak(tmp_path, "Say it.", text) - little < FIXED_BYTES + BYTES_PER_CODE_POINT * len(text)
