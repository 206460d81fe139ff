"""Reads the thoughts in rows of NeMo Gym, which have the form of OpenAI's Responses API.

Its servers put the whole thought of a local model under `summary`, where OpenAI has a summary by
another model.
"""

from __future__ import annotations

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_list, as_str

REQUEST = "responses_create_params"
_SUMMARISED = ("gpt-", "o1", "o3", "o4", "codex", "computer-use")
"""Beginnings of the names of models whose thoughts only the provider has."""


def with_thoughts(row: dict[str, Json]) -> dict[str, Json]:
    """Returns a row whose thoughts are in clear text; other values unchanged."""
    if REQUEST not in row:
        return row
    request, response = as_dict(row.get(REQUEST)), as_dict(row.get("response"))
    model = as_str(response.get("model")) or as_str(request.get("model"))
    if model.rpartition("/")[2].startswith(_SUMMARISED):
        return row
    changed = dict(row)
    if isinstance(request.get("input"), list):
        changed[REQUEST] = {**request, "input": [*map(_item, as_list(request["input"]))]}
    if isinstance(response.get("output"), list):
        changed["response"] = {**response, "output": [*map(_item, as_list(response["output"]))]}
    return changed


def _item(value: Json) -> Json:
    item = as_dict(value)
    if item.get("type") != "reasoning" or item.get("content") or item.get("encrypted_content"):
        return value
    texts: list[Json] = [
        {"type": "reasoning_text", "text": as_dict(part).get("text")}
        for part in as_list(item.get("summary"))
    ]
    return {**item, "summary": [], "content": texts}
