"""Checks what callers pass to the functions of the API, by the types of their parameters."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from builder.brief import shown
from builder.problem import UsageError, nearest

if TYPE_CHECKING:
    from builder.sample import Dialogue

Params = ParamSpec("Params")
Result = TypeVar("Result")
_Check = Callable[[str, Any], Any]

_RANGES: Mapping[str, tuple[int, int | None]] = {"workers": (1, None), "port": (0, 65535)}
"""{whole number: its smallest and largest value}; the others begin at 0."""

_OURS = frozenset(("out", "folder", "logs", "review"))
"""Paths that are opened as they are, with `~` for the home folder; others are names too."""

_MADE_BY = {
    "Conversation": "`read` yields them",
    "Sample": "`flatten` makes one; rows are for `verify_dataset`",
}
"""Types of values that callers get from another function."""


def checked(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Returns the function with its arguments checked; a wrong one raises UsageError.

    One name may stand for a list of it. A missing argument raises it too, and one that the function
    does not have.
    """
    signature = inspect.signature(function)
    checks = {
        name: check
        for name, parameter in signature.parameters.items()
        if (check := _check_for(str(parameter.annotation))) is not None
    }

    @wraps(function)
    def with_checks(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        for name in kwargs.keys() - signature.parameters.keys():
            hint = _hint(name, signature.parameters)
            raise UsageError(f"{function.__name__}: {name!r}: no such parameter{hint}")
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            hint = _one_list(signature) if "too many" in str(error) else ""
            raise UsageError(f"{function.__name__}: {error}{hint}") from None
        for name, value in bound.arguments.items():
            if name in checks:
                bound.arguments[name] = checks[name](name, value)
        return function(*bound.args, **bound.kwargs)

    return with_checks


def _one_list(signature: inspect.Signature) -> str:
    for name, first in signature.parameters.items():
        return f"; `{name}` is one list" if str(first.annotation).startswith("Sequence[") else ""
    return ""


def _hint(name: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    """Returns the end of a message about an unknown parameter; it may be a key of another one."""
    for other in ("options", "config"):
        if other not in parameters:
            continue
        kind = str(parameters[other].annotation).partition(" ")[0]
        place = _key_places(kind).get(name)
        if place is not None:
            value = "…"
            for key in reversed(place):
                value = f"{{{key!r}: {value}}}"
            return f"; it is a key of {other}: {other}={value}"
    return nearest(name, parameters)


def _key_places(kind: str) -> Mapping[str, Sequence[str]]:
    """Returns {key: where it is} of the options of that name."""
    from importlib import import_module

    from builder.options import keys_of, places_of_keys

    options = getattr(import_module("builder"), kind)
    places = places_of_keys(options) if kind == "Config" else {}
    own = {name: [name] for name in keys_of(options)}
    return {name: path.split(".") for name, path in places.items()} | own


def _check_for(annotation: str) -> _Check | None:
    """Returns the check for a type, as it is written; None: the function checks it itself."""
    base = annotation.removesuffix(" | None")
    check = _CHECKS.get(base)
    if check is None and base in _MADE_BY:
        check = _is_a(base)
    if check is None and (base.startswith("Callable") or base in ("OnProgress", "OnMessage")):
        check = _callable
    if check is None or base == annotation:
        return check
    inner = check
    return lambda name, value: None if value is None else inner(name, value)


def _path(name: str, value: Any) -> Any:
    if not isinstance(value, str | os.PathLike):
        kind = "qwen3, a folder or a Hub id" if name == "tokenizer" else "a path"
        raise UsageError(f"{name}: must be {kind}, found {shown(value)}")
    if name in _OURS and not os.fspath(value):
        raise UsageError(f"{name}: must be a path, found an empty text")
    return os.path.expanduser(value) if name in _OURS else value  # noqa: PTH111 - never raises


def _of(kind: Any) -> _Check:
    """Returns the check of a type that options have too."""

    def check(name: str, value: Any) -> Any:
        from builder.options import FieldReader

        reader = FieldReader(Path())
        found = reader.value(kind, value, name)
        if reader.faults:
            raise UsageError(reader.faults[0])
        return found

    return check


def _whole(name: str, value: Any) -> int:
    least, most = _RANGES.get(name, (0, None))
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        of = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name}: must be a whole number {of}, found {shown(value)}")
    return int(value)


def _names(name: str, value: Any) -> list[str]:
    if name == "command" and isinstance(value, str) and len(value.split()) > 1:
        raise UsageError(f"command: must be a list of words, such as {value.split()}")
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, Iterable) or isinstance(values, Mapping | bytes):
        raise UsageError(f"{name}: must be a list of texts, found {shown(value)}")
    return [_of(str)(name, one) for one in values]


def _paths(name: str, value: Any) -> list[Any]:
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes | str | os.PathLike):
        raise UsageError(f"{name}: must be a list of folders or files, found {shown(value)}")
    return [_path(name, one) for one in value]


def _path_or_paths(name: str, value: Any) -> list[Any]:
    return _paths(name, [value] if isinstance(value, str | os.PathLike) else value)


def _callable(name: str, value: Any) -> Any:
    if not callable(value):
        raise UsageError(f"{name}: must be a function, found {shown(value)}")
    return value


def _dialogue(name: str, value: Any) -> Dialogue:
    """Returns the dialogue, which may be passed as the result that contains it."""
    from builder.normalize.normalise import Normalised
    from builder.sample import Dialogue

    if isinstance(value, Normalised) and value.problem is not None:
        raise UsageError(f"{name}: was rejected: {value.problem.code}: {value.problem.detail}")
    chosen = value.dialogue if isinstance(value, Normalised) else value
    if not isinstance(chosen, Dialogue):
        found = type(chosen).__name__
        raise UsageError(f"{name}: must be a Dialogue (`normalise` makes one), found {found}")
    return chosen


def _is_a(kind: str) -> _Check:
    def check(name: str, value: Any) -> Any:
        if type(value).__name__ != kind:
            found = type(value).__name__
            raise UsageError(f"{name}: must be a {kind} ({_MADE_BY[kind]}), found {found}")
        return value

    return check


_CHECKS: Mapping[str, _Check] = {
    "str | Path": _path,
    "str": _of(str),
    "int": _whole,
    "bool": _of(bool),
    "Sequence[str]": _names,
    "str | Path | BuildResult": _path,
    "Sequence[str | Path | BuildResult]": _paths,
    "str | Path | Sequence[str | Path]": _path_or_paths,
    "EngineName": _of(Literal["local", "ray"]),
    "Dialogue | Normalised": _dialogue,
}
