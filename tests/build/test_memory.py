"""Memory of long records: they are built in a process of their own."""

import json
import subprocess
import sys

import pytest
from support.places import ROOT

pytest.importorskip("resource", reason="the system does not say how much memory a process took")

LONG = 1_500_000
FIXED_BYTES = 170_000_000
"""Memory that does not grow with the text: a second tokenizer, which a build of a megabyte loads,
caches, and pages that the allocator keeps."""
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


def peak(folder, *conversations):
    """Returns the peak memory in bytes of a build of (text, answer) pairs, each in its own log."""
    logs = folder / "logs"
    logs.mkdir()
    for number, (text, answer) in enumerate(conversations):
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
        (logs / f"{number}.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    command = ["build", str(logs), "-o", str(folder / "out"), "-q", "--fresh", "--workers", "1"]
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


@pytest.mark.slow
def test_long_texts_take_a_bounded_amount_of_memory_for_each_code_point(tmp_path):
    (tmp_path / "little").mkdir()
    little = peak(tmp_path / "little", ("Hello.", "Hello."))
    texts = [part * (LONG // len(part)) for part in TEXTS.values()]
    (tmp_path / "long").mkdir()
    conversations = [*((text, "Yes.") for text in texts), ("Say it.", texts[0])]
    longest = max(map(len, texts))
    most = FIXED_BYTES + BYTES_PER_CODE_POINT * longest
    assert peak(tmp_path / "long", *conversations) - little < most
