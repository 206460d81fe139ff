"""Defines a dialect: how a call is written into assistant text and read back from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from builder.conversation import Json
from builder.jsonio import loads
from builder.sample import Call


class ParseFault(ValueError):
    """Text that no rendering contains: the `code` of the fault and its `offset` in code points."""

    def __init__(self, code: str, detail: str, offset: int = 0) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.offset = offset


@dataclass(frozen=True, slots=True)
class CallText:
    """A call in a text: [start, end) includes its tags; `inner`, at `inner_at`, is between them."""

    start: int
    end: int
    inner: str
    inner_at: int


Properties = Mapping[str, Json]
"""{parameter: its schema} of one tool."""
Signatures = Mapping[str, Properties]
"""{tool: its parameters}: what a dialect without types needs to read a call."""


@dataclass(frozen=True, slots=True)
class LostCall:
    """Why a server's parser would not give a call back.

    code      `xml_types` (text that reads back as another value) or `xml_markup`
    reason    the parameter and its value
    readable  whether the text is one call again when it is read, though not the same call
    """

    code: str
    reason: str
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to write calls.

    name      its name in messages and documentation
    write     returns the text of a call, tags included
    find      yields the calls in a text from an offset on, in linear time
    read      returns the call at a match of `find`, types included. Raises ParseFault
    loss      returns why a server's parser would not give a call back, or None
    stray     returns why a server's parser would find a call in a text beside calls, or None
    served    returns the arguments as a server passes them to the template
    plain     whether `read` ignores the signatures, because the text has the types
    """

    name: str
    write: Callable[[Call], str]
    find: Callable[[str, int], Iterator[CallText]]
    read: Callable[[CallText, str, Signatures], Call]
    loss: Callable[[str, Mapping[str, Json], Signatures], LostCall | None]
    stray: Callable[[str], LostCall | None]
    served: Callable[[Call], Json]
    plain: bool = True


@lru_cache(maxsize=256)
def signatures(definitions: tuple[str, ...]) -> Signatures:
    """Returns the parameters of each tool from the JSON texts of the definitions."""
    known: dict[str, Properties] = {}
    for text in definitions:
        tool = loads(text)
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(name := function.get("name"), str):
            known.setdefault(name, _properties(function.get("parameters")))
    return known


def _properties(parameters: Json) -> Properties:
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    return properties if isinstance(properties, dict) else {}
