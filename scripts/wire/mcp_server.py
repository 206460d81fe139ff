"""A small MCP server on stdin and stdout: one tool, `add`, and an instruction."""

from __future__ import annotations

import json
import sys
from typing import Any

_NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}


def reply(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "demo", "version": "1"},
            "instructions": "DEMO MCP INSTRUCTIONS: add numbers with add.",
        }
    if method == "tools/list":
        schema = {**_NUMBERS, "required": ["a", "b"]}
        return {"tools": [{"name": "add", "description": "Adds.", "inputSchema": schema}]}
    if method == "tools/call":
        arguments = params["arguments"]
        text = str(arguments["a"] + arguments["b"])
        return {"content": [{"type": "text", "text": text}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = reply(request.get("method", ""), request.get("params") or {})
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
