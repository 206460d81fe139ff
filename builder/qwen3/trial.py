"""Tries a chat template of unknown origin in a process of its own, with limits.

A template is a program: its loops and multiplied texts may take hours and all memory, and nothing
stops them within this process. A text that keeps to the limits here, in the renderings that
`builder.qwen3.templates` makes and in a long conversation, is then rendered like any other.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from math import ceil
from time import process_time
from types import FrameType
from typing import Any

from builder.conversation import Json

CPU_SECONDS = 3
_WALL_SECONDS = 60
"""On a system that limits no CPU time (Windows), CPU_SECONDS * 4."""
MEMORY_BYTES = 2 << 30
"""Address space of the process, which starts with a tenth of it."""

_STARTED = b"started"
_NO_MEMORY = 3
_LONG = 64

_PROGRAM = """
import json, sys
given = json.load(sys.stdin)
sys.path[:] = given["path"]
from builder.qwen3.trial import run
run(given)
"""


def excess(template: str, options: Mapping[str, Json]) -> str | None:
    """Returns which limit a template exceeds, or None. Its exceptions are no excess.

    Also None where no process can be started.
    """
    return _excess(template, json.dumps(dict(options)), CPU_SECONDS, MEMORY_BYTES)


@cache
def _excess(template: str, options: str, seconds: int, memory: int) -> str | None:
    given = {
        "path": sys.path,
        "template": template,
        "options": json.loads(options),
        "seconds": seconds,
        "memory": memory,
    }
    slow = f"it renders a few messages in more than {seconds} s"
    wall = _WALL_SECONDS if find_spec("resource") else seconds * 4
    try:
        ran = subprocess.run(  # noqa: S603 - this interpreter and a program of our own
            [sys.executable, "-I", "-c", _PROGRAM],
            input=json.dumps(given).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=wall,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return slow
    except OSError:
        return None
    if not ran.returncode or not ran.stdout.startswith(_STARTED):
        return None
    if ran.returncode == _NO_MEMORY:
        return f"it renders a few messages in more than {memory >> 20} MiB"
    return slow


def run(given: Mapping[str, Any]) -> None:
    """Renders with the template in this process, which a limit ends."""
    # Imported before the limits apply.
    from jinja2 import nodes  # noqa: PLC0415 - only here
    from jinja2.ext import Extension, loopcontrols  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    from builder.qwen3.templates import conversation, style_of  # noqa: PLC0415

    class Generation(Extension):
        """Reads `{% generation %}` as transformers does: its body is rendered."""

        tags = {"generation"}  # noqa: RUF012 - so in Jinja

        def parse(self, parser: Any) -> list[nodes.Node]:
            """Returns the body."""
            next(parser.stream)
            body: list[nodes.Node] = parser.parse_statements(("name:endgeneration",), True)
            return body

    def refuse(message: str) -> None:
        raise ValueError(message)

    def to_json(value: Any, ensure_ascii: bool = False, **how: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **how)

    _limit(given["seconds"], given["memory"])
    sys.stdout.buffer.write(_STARTED)
    sys.stdout.buffer.flush()
    sys.settrace(_end_without_memory)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda _: "2026-01-01"
    with contextlib.suppress(Exception):  # the caller meets it again
        template = environment.from_string(given["template"])

        def render(messages: Any, tools: Any, **options: Any) -> str:
            return template.render(
                messages=messages,
                tools=tools,
                **{"add_generation_prompt": False, **given["options"], **options},
            )

        for how in ({}, {"enable_thinking": False}, {"enable_thinking": True}):
            with contextlib.suppress(Exception):
                render(*conversation(_LONG), add_generation_prompt=True, **how)
        style_of(render)


def _limit(seconds: int, memory: int) -> None:
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    wanted = (
        (resource.RLIMIT_CPU, ceil(process_time()) + seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, value in wanted:
        _, most = resource.getrlimit(kind)
        least = value if most == resource.RLIM_INFINITY else min(value, most)
        with contextlib.suppress(ValueError, OSError):  # macOS limits no address space
            resource.setrlimit(kind, (least, most))


def _end_without_memory(frame: FrameType, event: str, argument: Any) -> Any:
    """Ends the process at a MemoryError; Jinja catches it when it evaluates constants."""
    frame.f_trace_lines = False
    if event == "exception" and issubclass(argument[0], MemoryError):
        os._exit(_NO_MEMORY)
    return _end_without_memory
