"""Small datasets for pushing, and changes to them."""

import importlib.util
import json

import pytest

from builder import cli
from support.hub.scenarios import LFS, XET

XET_PATH = pytest.param(
    XET,
    marks=pytest.mark.skipif(
        importlib.util.find_spec("hf_xet") is None,
        reason="the client brings hf_xet for common machines only",
    ),
)
PATHS = (LFS, XET_PATH)
"""The upload paths for large files that the installed client supports."""

ALLOWED = ("--allow", "unaudited")


def write_logs(path, texts):
    rows = [
        {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "yes"}]}
        for text in texts
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def build(folder, texts, name="out", **config):
    """Builds a dataset of conversations with one turn each."""
    logs = folder / f"{name}.jsonl"
    write_logs(logs, texts)
    about = {"inputs": [{"path": str(logs), "license": "mit"}], **config}
    (folder / f"{name}.yaml").write_text(json.dumps(about))
    out = folder / name
    command = ["build", "-c", f"{folder}/{name}.yaml", "-o", str(out)]
    assert cli.main([*command, "--workers", "1", "--quiet"]) == 0
    return out


def listed(out):
    """Returns the paths that a push of the folder creates on the Hub."""
    files = json.loads((out / "manifest.json").read_bytes())["files"]
    return {item["path"] for item in files} | {"manifest.json"}


def finding(audit, **more):
    item = {"audit": audit, "code": "x", "message": "found", "count": 3, "samples": 2, **more}
    return {"audit": {"samples": 30, "findings": [item]}}


def edit_manifest(out, **changes):
    path = out / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))
