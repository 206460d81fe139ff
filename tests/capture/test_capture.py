"""The proxy against a scripted provider: what passes through is unchanged, what is kept is safe."""

import asyncio
import gzip
import json
import os
import zlib
from contextlib import asynccontextmanager

import brotli
import pytest
from aiohttp import ClientError, ClientSession, WSMsgType, web

from builder.capture.agents import routes
from builder.capture.job import Proxy, body_of, serve
from builder.capture.pairs import PairWriter
from builder.readers import read_events, readers, recognise
from builder.sources.source import Source

KEY = "sk-ant-api03-VERYSECRETVALUE123456"
REQUEST = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": "You are terse.",
    "tools": [{"name": "ls", "description": "Lists.", "input_schema": {"type": "object"}}],
    "messages": [{"role": "user", "content": "Hello"}],
    "stream": True,
}
ANSWER = {
    "id": "msg_01ABCDEF", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn",
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
EVENTS = [
    {"type": "message_start", "message": {**ANSWER, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
STREAM = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in EVENTS).encode()


@asynccontextmanager
async def proxied(tmp_path, handler, variable="ANTHROPIC_BASE_URL", path=""):
    """Yields (address through the proxy, writer) for a provider with this handler."""
    provider = await serve(handler)
    writer = PairWriter(tmp_path / "captures")
    found = routes({}, [f"{variable}=http://127.0.0.1:{provider.port}{path}"])
    (route,) = [one for one in found if one.variable == variable]
    async with Proxy(found, writer.put) as proxy:
        yield route.local(proxy.port), writer
    await provider.close()
    writer.close()


def pairs(tmp_path):
    (path,) = (tmp_path / "captures").iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


def everything_written(tmp_path):
    return b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def read_into(pieces, stream):
    async for piece in stream.iter_any():
        pieces.append(piece)


async def streams(request):
    await body_of(request)
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    for at in range(0, len(STREAM), 37):
        await reply.write(STREAM[at : at + 37])
        await asyncio.sleep(0)
    await reply.write_eof()
    return reply


def test_requests_and_streams_pass_unchanged_also_in_parallel(tmp_path):
    seen = []

    async def handler(request):
        seen.append((request.raw_path, dict(request.headers), await body_of(request)))
        return await streams(request)

    async def main():
        async with proxied(tmp_path, handler) as (url, _), ClientSession() as session:

            async def ask(number):
                data = json.dumps(REQUEST | {"number": number}).encode()
                headers = {"X-Api-Key": KEY, "Content-Type": "application/json"}
                async with session.post(f"{url}/v1/messages?beta=true", data=data,
                                        headers=headers) as reply:  # fmt: skip
                    return reply.status, reply.headers["Content-Type"], await reply.read(), data

            return await asyncio.gather(*map(ask, range(40)))

    results = asyncio.run(main())
    assert {one[:3] for one in results} == {(200, "text/event-stream", STREAM)}
    assert {path for path, _, _ in seen} == {"/v1/messages?beta=true"}
    assert {headers["X-Api-Key"] for _, headers, _ in seen} == {KEY}
    assert sorted(data for _, _, data in seen) == sorted(one[3] for one in results)
    found = pairs(tmp_path)
    assert sorted(one["request"]["body"]["number"] for one in found) == list(range(40))
    assert {one["response"]["body"] for one in found} == {STREAM.decode()}
    assert {one["response"]["id"] for one in found} == {"msg_01ABCDEF"}
    assert KEY.encode() not in everything_written(tmp_path)


@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("br", brotli.compress), ("deflate", zlib.compress), ("", bytes)],
)
def test_compressed_bodies_pass_as_they_are_and_are_kept_in_clear(tmp_path, coding, pack):
    body = pack(json.dumps(ANSWER).encode())

    async def handler(request):
        await body_of(request)
        headers = {"Content-Type": "application/json"}
        return web.Response(
            body=body, headers=headers | ({"Content-Encoding": coding} if coding else {})
        )

    async def main():
        async with (
            proxied(tmp_path, handler) as (url, _),
            ClientSession(auto_decompress=False) as session,
            session.post(f"{url}/v1/messages", json=REQUEST) as reply,
        ):
            return reply.headers.get("Content-Encoding", ""), await reply.read()

    assert asyncio.run(main()) == (coding, body)
    (found,) = pairs(tmp_path)
    assert found["response"]["body"] == ANSWER
    assert found["request"]["body"] == REQUEST


@pytest.mark.slow
def test_a_large_answer_passes_and_a_slow_agent_slows_the_provider(tmp_path):
    block = os.urandom(1 << 16).hex().encode()  # 128 KB
    sent = 0

    async def handler(request):
        nonlocal sent
        await body_of(request)
        reply = web.StreamResponse()
        await reply.prepare(request)
        for _ in range(160):
            await reply.write(block)
            sent += len(block)
        await reply.write_eof()
        return reply

    async def main():
        async with (
            proxied(tmp_path, handler) as (url, _),
            ClientSession() as session,
            session.post(f"{url}/v1/messages", data=b"x") as reply,
        ):
            await asyncio.sleep(0.3)
            before = sent
            return before, await reply.read()

    before, body = asyncio.run(main())
    assert body == block * 160
    assert before < len(body) - (1 << 20), "the proxy must not read what the agent does not take"
    assert pairs(tmp_path)[0]["response"]["body"] == body.decode()


def test_a_dropped_connection_is_dropped_for_the_agent_as_well(tmp_path):
    async def handler(request):
        await body_of(request)
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        await reply.write(STREAM[:200])
        await asyncio.sleep(0.05)
        request.transport.abort()
        return reply

    async def main():
        async with (
            proxied(tmp_path, handler) as (url, _),
            ClientSession() as session,
            session.post(f"{url}/v1/messages", json=REQUEST) as reply,
        ):
            got = []
            with pytest.raises(ClientError):
                await read_into(got, reply.content)
            return b"".join(got)

    assert asyncio.run(main()) == STREAM[:200]
    (found,) = pairs(tmp_path)
    assert found["fault"] == "dropped"
    assert found["response"]["body"] == STREAM[:200].decode()


def test_a_cancelled_stream_ends_at_the_provider(tmp_path):
    ended = asyncio.Event()

    async def handler(request):
        await body_of(request)
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        await reply.write(STREAM[:200])
        try:
            await asyncio.sleep(20)
        finally:
            ended.set()
        return reply

    async def main():
        async with proxied(tmp_path, handler) as (url, _), ClientSession() as session:
            reply = await session.post(f"{url}/v1/messages", json=REQUEST)
            await reply.content.readany()
            reply.close()
            await asyncio.wait_for(ended.wait(), 5)

    asyncio.run(main())
    assert pairs(tmp_path)[0]["fault"] == "cancelled"


def test_errors_and_unreachable_providers_come_as_they_are(tmp_path):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": f"key {KEY}"}}

    async def handler(request):
        await body_of(request)
        return web.json_response(error, status=529, headers={"Retry-After": "7"})

    async def main():
        async with proxied(tmp_path, handler) as (url, writer), ClientSession() as session:
            headers = {"Authorization": f"Bearer {KEY}"}
            async with session.post(f"{url}/v1/messages", json=REQUEST, headers=headers) as reply:
                first = reply.status, reply.headers["Retry-After"], await reply.json()
            async with (
                Proxy(routes({}, ["X_URL=http://127.0.0.1:9/v1"]), writer.put) as other,
                session.post(f"http://127.0.0.1:{other.port}/x-url/v1/responses") as reply,
            ):
                return first, reply.status

    assert asyncio.run(main()) == ((529, "7", error), 502)
    first, second = pairs(tmp_path)
    assert first["response"]["status"] == 529
    assert second["fault"] == "unreachable"
    assert KEY.encode() not in everything_written(tmp_path)


def test_credentials_of_headers_and_query_strings_are_nowhere_on_disk(tmp_path):
    secrets = {
        "Authorization": "Bearer tok-AAAAAAAAAAAA", "X-Api-Key": "key-BBBBBBBBBBBB",
        "X-Goog-Api-Key": "AIzaCCCCCCCCCCCC", "Cookie": "sid=DDDDDDDDDDDD; other=EEEEEEEEEEEE",
        "X-Custom-Token": "FFFFFFFFFFFFFF", "Api-Key": "GGGGGGGGGGGG",
        "Chatgpt-Account-Id": "HHHHHHHHHHHHHH",
    }  # fmt: skip

    async def handler(request):
        sent = await body_of(request)
        everything = f"{dict(request.headers)} {request.raw_path} {sent}"
        reply = web.json_response({"echo": everything, "AIzaCCCCCCCCCCCC": 1})
        reply.set_cookie("session", "IIIIIIIIIIIIIIII")
        return reply

    async def main():
        path = "/v1beta/models/m:generateContent?key=JJJJJJJJJJJJ&alt=sse&sig=K%2BKKKKKKKKKK"
        async with (
            proxied(tmp_path, handler) as (url, _),
            ClientSession() as session,
            session.post(url + path, json={"contents": []}, headers=secrets) as reply,
        ):
            return await reply.text()

    assert "tok-AAAAAAAAAAAA" in asyncio.run(main())
    written = everything_written(tmp_path).decode()
    for letter in "ABCDEFGIJK":
        assert letter * 8 not in written
    assert pairs(tmp_path)[0]["request"]["url"].endswith("generateContent?alt=sse")


def test_websockets_pass_and_give_pairs(tmp_path):
    completed = {"type": "response.completed", "response": {"id": "resp_1", "object": "response",
                 "status": "completed", "output": []}}  # fmt: skip

    async def handler(request):
        socket = web.WebSocketResponse(protocols=("responses",))
        await socket.prepare(request)
        async for message in socket:
            assert json.loads(message.data)["type"] == "response.create"
            await socket.send_str(
                json.dumps({"type": "response.created", "response": {"id": "resp_1"}})
            )
            await socket.send_str(json.dumps(completed))
        return socket

    async def main():
        got = []
        async with (
            proxied(tmp_path, handler, "OPENAI_BASE_URL", "/v1") as (url, _),
            ClientSession() as session,
            session.ws_connect(url + "/responses", protocols=["responses"],
                               headers={"Authorization": f"Bearer {KEY}"}) as socket,
        ):  # fmt: skip
            for number in range(2):
                sent = {"type": "response.create", "model": "m", "input": f"hello {number}"}
                await socket.send_str(json.dumps(sent))
                for _ in range(2):
                    message = await socket.receive()
                    assert message.type is WSMsgType.TEXT
                    got.append(json.loads(message.data)["type"])
        return got

    assert asyncio.run(main()) == ["response.created", "response.completed"] * 2
    found = pairs(tmp_path)
    assert [one["request"]["body"]["input"] for one in found] == ["hello 0", "hello 1"]
    assert [one["response"]["id"] for one in found] == ["resp_1", "resp_1"]
    assert KEY.encode() not in everything_written(tmp_path)


def test_a_folder_that_cannot_be_written_never_breaks_the_run(tmp_path):
    (tmp_path / "captures").write_text("a file is in the way")

    async def main():
        async with (
            proxied(tmp_path, streams) as (url, writer),
            ClientSession() as session,
            session.post(f"{url}/v1/messages", json=REQUEST) as reply,
        ):
            return writer, await reply.read()

    writer, body = asyncio.run(main())
    assert body == STREAM
    assert (writer.written, writer.lost) == (0, 1)
    assert writer.fault


def test_captured_conversations_equal_those_of_a_plain_log_and_are_proven(tmp_path):
    async def main():
        async with (
            proxied(tmp_path, streams) as (url, _),
            ClientSession() as session,
            session.post(f"{url}/v1/messages", json=REQUEST) as reply,
        ):
            await reply.read()

    asyncio.run(main())
    (path,) = (tmp_path / "captures").iterdir()
    plain = tmp_path / "plain.jsonl"
    plain.write_text(json.dumps({"request": REQUEST, "response": ANSWER}) + "\n")

    def read(file):
        source = Source(file.name, file)
        assert list(recognise(source)) == ["anthropic-messages"]
        return list(read_events(readers()["anthropic-messages"], source))

    (captured,), (expected,) = read(path), read(plain)
    assert captured == expected
    assert captured.context.level == "proven"
