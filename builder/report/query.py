"""What a sample must have to be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from builder.conversation import Json
from builder.jsonio import dumps
from builder.report.facts import as_object, as_text


@dataclass(frozen=True, slots=True)
class Query:
    """What a sample must have: each field that is not "".

    text    in a message or a definition, in any case
    tool    the name of a tool that is defined or called
    source  part of the path, session or record that it comes from
    code    of a change to it, its behaviour pattern, or its format
    """

    text: str = ""
    tool: str = ""
    source: str = ""
    code: str = ""

    @property
    def asks_rows(self) -> bool:
        """Must the rows be read, and not their meta/ alone?"""
        return bool(self.text or self.tool)

    @property
    def holds(self) -> bytes:
        """What a line of meta/ must hold, as it is written there, to be worth reading."""
        return dumps(self.source or self.code)[1:-1].encode("utf-8", "replace")

    def __bool__(self) -> bool:
        return any(getattr(self, item.name) for item in fields(self))

    def has_meta(self, meta: Mapping[str, Json]) -> bool:
        """Does what meta/ says of a sample fit?"""
        if self.source:
            places = (as_text(meta.get(key)) for key in ("source", "conversation", "record"))
            if not any(self.source in place for place in places):
                return False
        if not self.code:
            return True
        kinds = (as_text(meta.get(key)) for key in ("pattern", "format", "tools_source"))
        return self.code in as_object(meta.get("changes")) or self.code in kinds

    def has_row(self, value: Json) -> bool:
        """Does the row itself fit?"""
        row = as_object(value)
        raw = row.get("messages")
        messages = [as_object(item) for item in raw] if isinstance(raw, list) else []
        if self.text:
            wanted = self.text.casefold()
            contents = (as_text(item.get("content")).casefold() for item in messages)
            in_tools = wanted in dumps(row.get("tools")).casefold()
            if not in_tools and not any(wanted in content for content in contents):
                return False
        return not self.tool or self.tool in _tool_names(row.get("tools")) or self._calls(messages)

    def _calls(self, messages: list[dict[str, Json]]) -> bool:
        head = f'<tool_call>\n{{"name": {dumps(self.tool)}, '
        return any(
            head in as_text(item.get("content"))
            for item in messages
            if item.get("role") == "assistant"
        )


def _tool_names(tools: Json) -> set[str]:
    listed = tools if isinstance(tools, list) else []
    return {as_text(as_object(as_object(tool).get("function")).get("name")) for tool in listed}
