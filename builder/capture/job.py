"""Runs a command whose requests pass through the proxy, or serves until it is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from builder.capture.pairs import PairWriter
from builder.capture.providers import Route, through
from builder.capture.proxy import Proxy
from builder.problem import OptionError, UsageError

Result = TypeVar("Result")


def capture_command(
    command: Sequence[str],
    folder: Path,
    routes: Sequence[Route],
    *,
    adapt: Callable[[Sequence[str], dict[str, str]], Sequence[str]],
) -> tuple[int, PairWriter]:
    """Runs the command to its end; returns its exit code and what was written.

    `adapt(command, environment)` returns the command with what it needs in addition to the
    environment, which it may change. Raises UsageError if the command does not exist.
    """
    writer = PairWriter(folder)
    try:
        code = run_to_end(_run(command, routes, writer, adapt))
    finally:
        writer.close()
    return code, writer


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine and returns its result, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Future[Result]]] = Future()

    async def supervised() -> Result:
        task = asyncio.ensure_future(work)
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(asyncio.run, supervised())
        try:
            return done.result()
        except KeyboardInterrupt:
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
            raise


async def _run(
    command: Sequence[str],
    routes: Sequence[Route],
    writer: PairWriter,
    adapt: Callable[[Sequence[str], dict[str, str]], Sequence[str]],
) -> int:
    async with Proxy(routes, writer.put) as proxy:
        environment = through(os.environ, routes, proxy.port)
        return await run_child(adapt(command, environment), environment)


async def run_child(
    command: Sequence[str], environment: Mapping[str, str], *, seconds: float | None = None
) -> int:
    """Runs a command that shares this process's terminal; returns its exit code.

    Signals of the terminal reach the command, which decides what they mean. `seconds` limits its
    time. Raises UsageError if it does not exist or cannot be run.
    """
    try:
        child = await asyncio.create_subprocess_exec(*command, env=dict(environment))
    except FileNotFoundError:
        raise UsageError(f"{command[0]!r}: no such program") from None
    except OSError as error:
        raise UsageError(f"{command[0]!r}: {error.strerror or error}") from None
    with _signals_for(child):
        try:
            code = await asyncio.wait_for(child.wait(), seconds)
        except TimeoutError:
            child.kill()
            await child.wait()
            raise
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _signals_for(child: asyncio.subprocess.Process) -> Iterator[None]:
    """Leaves SIGINT to the child, which the terminal sends it to as well; passes others on."""
    loop = asyncio.get_running_loop()
    names = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP")
    caught = [number for name in names if (number := getattr(signal, name, None)) is not None]

    def receive(number: int) -> None:
        if number not in (signal.SIGINT, getattr(signal, "SIGQUIT", None)):
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(number)

    added = []
    for number in caught:
        # No signal handlers on Windows, nor in a thread that is not the main one.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, receive, number)
            added.append(number)
    try:
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)


def capture_serving(
    port: int, folder: Path, routes: Sequence[Route], *, ready: Callable[[int], object]
) -> PairWriter:
    """Serves at a port until it is interrupted; returns what was written.

    `ready(port)` is called once it listens. Raises UsageError if the port is taken.
    """
    writer = PairWriter(folder)
    try:
        run_to_end(_serve(port, routes, writer, ready))
    except OSError as error:
        raise OptionError("port", f" {port}: {error.strerror or error}") from None
    finally:
        writer.close()
    return writer


async def _serve(
    port: int, routes: Sequence[Route], writer: PairWriter, ready: Callable[[int], object]
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM"):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(getattr(signal, name), stopped.set)
    async with Proxy(routes, writer.put, port) as proxy:
        ready(proxy.port)
        await stopped.wait()
