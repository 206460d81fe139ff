"""Loads a tokenizer with transformers, with as little of the library as it needs."""

from __future__ import annotations

import contextlib
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.credentials import reason
from builder.parallel.host import is_own_process, quiet_transformers
from builder.problem import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PACKAGE = "transformers"
_MODULE = f"{_PACKAGE}.tokenization_utils_tokenizers"
_CLASS = "PreTrainedTokenizerFast"


def pretrained(name: str, folder: Path, *, plain: bool = False) -> PreTrainedTokenizerBase:
    """Loads a tokenizer from its files; `name` is for messages. Raises UsageError.

    `plain`: not with AutoTokenizer, which takes a second longer, because it imports all model
    configurations. Its tokenizer is a fifth faster.
    """
    try:
        with quiet_transformers():
            by = _plain_class() if plain else import_module(_PACKAGE).AutoTokenizer
            loaded = by.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    except Exception as error:  # a broken installation, or corrupt files
        raise UsageError(f"tokenizer {name!r}: cannot be loaded: {reason(error)}") from None
    tokenizer: PreTrainedTokenizerBase = loaded
    return tokenizer


def _plain_class() -> Any:
    """Returns `transformers.PreTrainedTokenizerFast`.

    The package's `__init__` reads the source of all models for their names, which takes 0.3 s of
    CPU: a tenth of a build of a few samples. In a process of our own it therefore runs only when
    something imports the package itself, which finds the same modules loaded. Falls back to a plain
    import if a version of the library has other modules.
    """
    if is_own_process() and _PACKAGE not in sys.modules:
        with contextlib.suppress(Exception):
            return _without_models()
        for name in [name for name in sys.modules if name.startswith(f"{_PACKAGE}.")]:
            del sys.modules[name]
    return getattr(import_module(_PACKAGE), _CLASS)


def _without_models() -> Any:
    """Imports the class's module below a package whose `__init__` has not run."""
    spec = find_spec(_PACKAGE)
    assert spec is not None, "transformers is a dependency"
    package: Any = module_from_spec(spec)
    package.__version__ = version(_PACKAGE)
    sys.modules[_PACKAGE] = package
    try:
        import_module(f"{_PACKAGE}.dependency_versions_check")  # the first import in `__init__`
        return getattr(import_module(_MODULE), _CLASS)
    finally:
        del sys.modules[_PACKAGE]
