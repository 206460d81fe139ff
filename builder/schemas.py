"""Arguments against the JSON Schema of their tool, draft 2020-12.

Schemas come out of logs: they may be broken, refer anywhere and hold hostile patterns. Nothing is
fetched, nothing raises, and a pattern that could run away is not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from builder.conversation import Json
from builder.jsonio import dumps, loads

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MAX_PATTERN = 200
MAX_SUBJECT = 10_000
_RUNS_AWAY = re.compile(r"[+*}][^()]*\)\s*[+*{?]")


class BrokenSchemaFault(ValueError):
    """The schema itself cannot be used."""


def violations(parameters: Json, arguments: dict[str, Json]) -> list[str]:
    """What in `arguments` breaks the schema, each as "path: message", in a fixed order.

    Raises BrokenSchemaFault, nothing else.
    """
    if not isinstance(parameters, dict):
        raise BrokenSchemaFault("the parameters are no JSON Schema")
    validator = _validator(dumps(parameters))
    if isinstance(validator, str):
        raise BrokenSchemaFault(validator)
    try:
        found = list(validator.iter_errors(arguments))
    except Exception as error:  # unresolvable reference, TypeError, recursion: the schema's
        raise BrokenSchemaFault(_brief(error)) from None
    return sorted(f"{error.json_path}: {error.message[:200]}" for error in found)


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Validator | str:
    """A validator for the schema's text, or why there can be none."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 0.1 s, only where needed
    from jsonschema.validators import extend  # noqa: PLC0415 - as above
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # noqa: PLC0415 - as above; it has no types

    decoded: Any = loads(schema)
    try:
        Draft202012Validator.check_schema(decoded)
        kind = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]  # the library's
        validator: Validator = kind(decoded, registry=REGISTRY)
    except Exception as error:  # SchemaError, TypeError, re.error, RecursionError: all the schema's
        return _brief(error)
    return validator


def _pattern(_: Validator, pattern: Any, instance: Any, __: Any) -> Iterator[Any]:
    """The keyword `pattern`, except where evaluating it may never end."""
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    if not isinstance(instance, str) or len(instance) > MAX_SUBJECT:
        return
    if len(pattern) > MAX_PATTERN or _RUNS_AWAY.search(pattern):
        return
    if not re.search(pattern, instance):
        yield ValidationError(f"{instance[:80]!r} does not match {pattern!r}")


def _brief(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {' '.join(str(text).split())[:200]}"
