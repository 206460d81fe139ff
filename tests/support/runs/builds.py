"""Builds made by tests: the command, its rows and all its bytes."""

import json

from builder import cli
from support.places import DATA


def build(out, *more, inputs=(DATA,)):
    return cli.main(["build", *map(str, inputs), "-o", str(out), "--quiet", *map(str, more)])


def build_with_one_and_two_workers(folder, *options, inputs):
    """Builds twice; returns the output, which has the same bytes both times."""
    outs = [folder / "out1", folder / "out2"]
    for workers, out in enumerate(outs, 1):
        assert build(out, *options, "--workers", workers, inputs=inputs) == 0
    assert files(outs[0]) == files(outs[1])
    return outs[0]


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".builder-collect" not in path.parts
    }


def files(out):
    """Returns the contents of a folder, without what may differ between two runs."""
    found = {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and ".state" not in path.parts
    }
    manifest = json.loads(found["manifest.json"])
    del manifest["run"]
    found["manifest.json"] = json.dumps(manifest).encode()
    return found
