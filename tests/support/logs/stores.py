"""Contents of inputs and datasets in stores."""

import json

from builder.problem import Problem
from builder.readers.discovery import find_sources


def data_of(made):
    return {
        name: data for name, data in made.items() if name.startswith(("data/", "meta/", "rejects"))
    }


def stored(system, root):
    """Returns the contents of a store's folder, as `files` does for local folders."""
    found = {
        path.removeprefix(root).lstrip("/"): system.cat_file(path)
        for path in system.find(root)
        if "/.state/" not in path
    }
    manifest = json.loads(found["manifest.json"])
    del manifest["run"]
    return {**found, "manifest.json": json.dumps(manifest).encode()}


def names(spec):
    return [
        (item.code, item.where) if isinstance(item, Problem) else item.name
        for item in find_sources(spec)
    ]
