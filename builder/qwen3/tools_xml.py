"""Writes tool definitions as Qwen3-Coder's templates do: as nested tags, not as JSON."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from builder.conversation import Json
from builder.jsonio import loads
from builder.qwen3.xml_calls import Spelling, as_json, as_python


def _definition(text: str, spelling: Spelling) -> str:
    """Returns the tags of one definition, given its JSON text."""
    tool = loads(text)
    function = tool.get("function", tool) if isinstance(tool, dict) else {}
    if not isinstance(function, dict):
        return text
    lines = ["<function>", f"<name>{_text(function.get('name'))}</name>"]
    if "description" in function:
        lines.append(f"<description>{_text(function['description']).strip()}</description>")
    lines.append("<parameters>")
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    for name, fields in properties.items() if isinstance(properties, dict) else ():
        lines += ["<parameter>", f"<name>{name}</name>"]
        if isinstance(fields, dict):
            if "type" in fields:
                lines.append(f"<type>{_text(fields['type'])}</type>")
            if "description" in fields:
                lines.append(f"<description>{_text(fields['description']).strip()}</description>")
            lines += _others(fields, ("name", "type", "description"), spelling)
        lines.append("</parameter>")
    lines += _others(parameters, ("type", "properties"), spelling)
    lines.append("</parameters>")
    lines += _others(function, ("type", "name", "description", "parameters"), spelling)
    return "\n".join([*lines, "</function>"])


def _others(value: Json, handled: Collection[str], spelling: Spelling) -> list[str]:
    """Returns a line for each key of an object that the template does not name itself."""
    if not isinstance(value, dict):
        return []
    rest = {key: item for key, item in value.items() if key not in handled}
    return [
        f"<{key}>{item if isinstance(item, str) else spelling(item)}</{key}>"
        for key, item in rest.items()
    ]


def _text(value: Json) -> str:
    """Returns a value as the template's filter `string` does: as Python prints it."""
    return str(value)


python_definition = partial(_definition, spelling=as_python)
json_definition = partial(_definition, spelling=as_json)
