"""Chooses the file of a folder that `builder inspect` shows."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from builder.conversation import Conversation
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.problem import OptionError, Problem, UsageError
from builder.readers import Reader, may_be_mapped, read_events, readers, recognise
from builder.readers.discovery import find_sources
from builder.sources.copies import local_copy
from builder.sources.related import file_version
from builder.sources.source import Source
from builder.text import counted, first_names

USABLE = 2
"""The worth of a source whose first conversation can be shown as a sample."""
FILES = 2000
"""Files of a folder that are examined: more would take minutes."""
SHARED = 64 << 20
"""Bytes of the files of a folder that are read to infer tools from all of them, as a build does."""
FIRST = 20
"""Conversations of each file of a folder that are tried."""


@dataclass(frozen=True, slots=True)
class ChosenSource:
    """A local copy of the source to show.

    index    the number of the conversation to show in it; None: the first usable one
    formats  of a folder: {reader: its sources}; None: it is a file
    unknown  of a folder: the names of the files that no reader recognises
    """

    source: Source
    index: int | None
    formats: Mapping[str, Sequence[Source]] | None = None
    unknown: Sequence[str] = ()

    @property
    def files(self) -> dict[str, int] | None:
        """The number of files of each reader; None if it is a file."""
        if self.formats is None:
            return None
        return {name: len(self.formats[name]) for name in sorted(self.formats)}

    def shares(self, reader: str) -> bool:
        """Returns whether all sources of the reader are small enough to infer tools from them."""
        return sum(map(_size, (self.formats or {}).get(reader, ()))) <= SHARED

    def sharing(self, reader: str) -> Sequence[Source]:
        """Returns the sources to infer tools from."""
        sources = (self.formats or {}).get(reader, ())
        return sources if sources and self.shares(reader) else (self.source,)


@contextmanager
def chosen(
    path: str, options: NormalizeOptions, index: int | None = None, *, is_mapped: bool = False
) -> Iterator[ChosenSource]:
    """Yields the source of a path to show; `index` is the number of a conversation in the path.

    For a folder and no number, the source is the first recognised one with a conversation that is
    not rejected among its first, else the first with a conversation, else the first one. For a
    single file there are no counts, and it may be unrecognised. `is_mapped`: the first file that
    no reader recognises, for a mapping, if there is one. Raises UsageError if there is nothing to
    show.
    """
    sources = list(islice(find_sources(path), FILES))
    if len(sources) < 2:
        only = sources[0] if sources else None
        if not isinstance(only, Source):
            raise UsageError(f"{path}: {only.detail if only else 'no file'}")
        with local_copy(only) as copy:
            yield ChosenSource(copy, index)
        return
    first: Source | None = None
    most = passed = before = 0
    formats: defaultdict[str, list[Source]] = defaultdict(list)
    unknown: list[str] = []
    unread: Source | None = None
    for source in sources:
        if isinstance(source, Problem):
            continue
        with local_copy(source) as copy:
            claims = recognise(copy)
            if len(claims) != 1:
                unknown.append(copy.name)
                unread = unread or (source if may_be_mapped(copy) else None)
                continue
            (name,) = claims
            formats[name].append(source)
            if index is not None:
                if first is None:
                    before, passed = passed, passed + _count(copy, readers()[name])
                    first = source if index < passed else None
                continue
            if most < USABLE and (one := worth(copy, readers()[name], options)) > most:
                most, first = one, source
        first = first or source
    if is_mapped and unread is not None:
        with local_copy(unread) as copy:
            yield ChosenSource(copy, index)
        return
    if first is None and formats:
        raise no_such(index, passed)
    if first is None:
        how = "" if unread is None else f"; `builder inspect {shlex.quote(path)} --suggest-mapping`"
        how += " proposes a mapping for the first (docs/mapping.md)" if how else ""
        names = f" ({first_names(unknown)})" if unknown else ""
        files = counted(len(sources), "file")
        raise UsageError(f"{path}: no reader recognises any of its {files}{names}{how}")
    with local_copy(first) as copy:
        own = None if index is None else index - before
        yield ChosenSource(copy, own, formats, unknown)


def _count(source: Source, reader: Reader) -> int:
    return sum(isinstance(event, Conversation) for event in read_events(reader, source))


def no_such(index: int | None, conversations: int) -> OptionError:
    """Returns the error for a number of a conversation that does not exist."""
    is_are = "is" if conversations == 1 else "are"
    there = f"there {is_are} {counted(conversations, 'conversation')}, numbered from 0"
    return OptionError("index", f" {index}: {there}")


def _size(source: Source) -> int:
    """Returns the bytes of its files, as far as they are local."""
    paths = (item.path for item in source.members or (source,))
    return sum(version[0] for path in paths if path and (version := file_version(path)))


def worth(source: Source, reader: Reader, options: NormalizeOptions) -> int:
    """Returns USABLE if one of the first conversations can be normalised, 1 if not, 0 without."""
    events = read_events(reader, source)
    worth = 0
    for event in islice((event for event in events if isinstance(event, Conversation)), FIRST):
        if normalise(event, options).dialogue is not None:
            return USABLE
        worth = 1
    return worth
