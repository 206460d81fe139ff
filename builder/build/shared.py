"""Finds the tool definitions that a conversation gets from others, as a build shares them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from builder.conversation import Conversation, Json
from builder.normalize.options import NormalizeOptions, SharedTools
from builder.normalize.tool_use import ToolUse
from builder.normalize.tools import calls_undefined, definitions_in
from builder.readers import Reader, read_events
from builder.sources.listing import local_copy
from builder.sources.source import Source


def tools_listed(reader: Reader, source: Source) -> dict[str, dict[str, Json]]:
    """Reads the source once more; returns the tools that its requests list."""
    events = read_events(reader, source.unread_copy())
    return definitions_in(event for event in events if isinstance(event, Conversation))


class ToolSharing:
    """Gives single conversations the definitions that a build shares between sessions.

    `sources` are those that `reader` reads in the build, of which `source` has the conversations.
    They are read once, and only if a conversation needs it.
    """

    def __init__(
        self, options: NormalizeOptions, reader: Reader, source: Source, sources: Iterable[Source]
    ) -> None:
        self.options = options
        self.reader = reader
        self.source = source
        self.sources = tuple(sources)

    def of(self, conversation: Conversation) -> SharedTools | None:
        """Returns the definitions for a conversation of the source; None: it needs none."""
        if self.reader.is_agent:
            own = ToolUse()
            lacks = own.take(conversation, self.options.supplied_tools)
            return self._use.shared(ToolUse.wanted(own.counts)) if lacks else None
        may_look = self.options.missing_tools == "untrained" and conversation.recorded
        return self._listed if may_look and calls_undefined(conversation) else None

    @cached_property
    def _use(self) -> ToolUse:
        use = ToolUse()
        for source in self.sources:
            with local_copy(source) as copy:
                for event in read_events(self.reader, copy.unread_copy()):
                    if isinstance(event, Conversation):
                        use.take(event, self.options.supplied_tools)
        return use

    @cached_property
    def _listed(self) -> SharedTools:
        return SharedTools(source=tools_listed(self.reader, self.source))
