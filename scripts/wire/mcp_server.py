"""A small MCP server on stdin and stdout: tools that add, return an image, write much, and others.

A call of `crash` ends the server. A call of `grow` adds the tool `late`, and the server notifies
the client of it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)
_TOOLS = [
    {"name": "add", "description": "Adds.", "inputSchema": {**_NUMBERS, "required": ["a", "b"]}},
    {"name": "picture", "description": "Shows a picture.", "inputSchema": _NOTHING},
    {"name": "big", "description": "Writes much.", "inputSchema": _NOTHING},
    {"name": "grow", "description": "Adds a tool.", "inputSchema": _NOTHING},
    {"name": "crash", "description": "Ends the server.", "inputSchema": _NOTHING},
]
_LATE = {"name": "late", "description": "Comes later.", "inputSchema": _NOTHING}


def reply(method: str, params: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the result of a request; `tools` are those offered, to which `grow` adds one."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "demo", "version": "1"},
            "instructions": "DEMO MCP INSTRUCTIONS: add numbers with add.",
        }
    if method == "tools/list":
        return {"tools": tools}
    if method == "tools/call":
        return {"content": _content(params["name"], params.get("arguments") or {}, tools)}
    return {}


def _content(
    name: str, arguments: dict[str, Any], tools: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    match name:
        case "add":
            text = str(arguments["a"] + arguments["b"])
        case "picture":
            image = {"type": "image", "data": _PIXEL, "mimeType": "image/png"}
            return [{"type": "text", "text": "See the picture:"}, image]
        case "big":
            text = "\n".join(f"line {number} of much text" for number in range(9000))
        case "crash":
            sys.exit(1)
        case "grow":
            tools.append(_LATE)
            text = "grown"
        case _:
            text = f"{name} was called"
    return [{"type": "text", "text": text}]


def main() -> None:
    tools = list(_TOOLS)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        known = len(tools)
        result = reply(request.get("method", ""), request.get("params") or {}, tools)
        messages = [{"jsonrpc": "2.0", "id": request["id"], "result": result}]
        if len(tools) > known:
            messages.append({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        for message in messages:
            print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
