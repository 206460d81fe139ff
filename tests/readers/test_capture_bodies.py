"""One exchange in the forms in which recorders store bodies: every form gives the same answer."""

import gzip
import json
import zlib
from base64 import b64encode

import brotli
import pytest

from builder.conversation import Conversation
from builder.problem import Problem
from builder.readers import read_events, readers
from builder.readers.api.bodies import content_encoding, read_body
from builder.readers.toolkit.unknown_keys import shipped_keys
from builder.sources.source import Source

try:
    from compression import zstd
except ImportError:
    from backports import zstd

ANSWER = "It\u2019s 4 °C in Malmö."
SENT = {"model": "toy-1", "messages": [{"role": "user", "content": "Malmö?"}]}
MESSAGE = {"role": "assistant", "content": ANSWER}
GOT = {"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]}
URL = "https://llm.example/v1/chat/completions"
SENT_TEXT, GOT_TEXT = (json.dumps(body, ensure_ascii=False) for body in (SENT, GOT))
SENT_BYTES, GOT_BYTES = SENT_TEXT.encode(), GOT_TEXT.encode()
STREAM = (
    'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": '
    + json.dumps(ANSWER)
    + '}, "finish_reason": "stop"}], "object": "chat.completion.chunk"}\n\ndata: [DONE]\n\n'
).encode()


def base64(data):
    return b64encode(data).decode()


def deflated(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def packed(data):
    return gzip.compress(data, mtime=0)


def yaml_cassette(sent, got, *, key="interactions", headers=""):
    return (
        f"{key}:\n- request:\n    body: {sent}\n    method: POST\n    uri: {URL}\n"
        f"  response:\n    body: {got}\n{headers}"
        "    status: {code: 200, message: OK}\nversion: 1\n"
    )


def binary(tag, data, style="|-"):
    text = base64(data)
    return f"{tag} {style}\n" + "".join(
        f"        {text[at : at + 60]}\n" for at in range(0, len(text), 60)
    )


def har(sent, got, **headers):
    listed = [{"name": name.replace("_", "-"), "value": value} for name, value in headers.items()]
    request = {"method": "POST", "url": URL, "headers": [], "postData": sent}
    response = {"status": 200, "headers": listed, "content": got}
    return json.dumps({"log": {"entries": [{"request": request, "response": response}]}})


def pair(request, response):
    line = json.dumps({"request": {"url": URL, **request}, "response": {"status": 200, **response}})
    return f"{line}\n{line}\n"


QUOTED = json.dumps(SENT_TEXT)
LISTED = {"headers": [["Content-Encoding", "br"]]}
FORMS = {
    "psych": yaml_cassette(QUOTED, "\n      string: " + binary("!binary", GOT_BYTES)),
    "psych folded": yaml_cassette(QUOTED, "\n      string: " + binary("!binary", GOT_BYTES, ">-")),
    "psych request": yaml_cassette(
        "\n      string: " + binary("!binary", SENT_BYTES),
        "\n      string: " + json.dumps(GOT_TEXT),
    ),
    "psych stream": yaml_cassette(QUOTED, "\n      string: " + binary("!binary", STREAM)),
    "psych keys": yaml_cassette(
        QUOTED, f'\n      !binary "{base64(b"string")}": ' + binary("!binary", GOT_BYTES)
    ),
    "pyyaml": yaml_cassette(QUOTED, "\n      string: " + binary("!!binary", GOT_BYTES)),
    "pyyaml gzip": yaml_cassette(
        QUOTED, "\n      string: " + binary("!!binary", packed(GOT_BYTES))
    ),
    "go": yaml_cassette(binary("!!binary", SENT_BYTES), binary("!!binary", GOT_BYTES)),
    "pickled": yaml_cassette(
        "!!python/object/new:_io.BytesIO\n      state: !!python/tuple\n      - "
        + binary("!!binary", SENT_BYTES)
        + "      - 0\n      - null",
        json.dumps(GOT_TEXT),
    ),
    "brotli": yaml_cassette(
        QUOTED,
        "\n      string: " + binary("!!binary", brotli.compress(GOT_BYTES)),
        headers="    headers:\n      Content-Encoding:\n      - br\n",
    ),
    "base64_string": yaml_cassette(
        QUOTED, json.dumps({"base64_string": base64(packed(GOT_BYTES)), "encoding": "utf-8"})
    ),
    "betamax": json.dumps(
        {
            "http_interactions": [
                {
                    "request": {
                        "body": {"base64_string": base64(SENT_BYTES), "encoding": "utf-8"},
                        "uri": URL,
                    },
                    "response": {
                        "body": {"base64_string": base64(packed(GOT_BYTES)), "encoding": "utf-8"},
                        "status": {"code": 200, "message": "OK"},
                    },
                }
            ],
            "recorded_with": "betamax/0.9",
        }
    ),
    "har": har({"text": SENT_TEXT}, {"text": base64(GOT_BYTES), "encoding": "base64", "size": 9}),
    "har gzip": har({"text": SENT_TEXT}, {"text": base64(packed(GOT_BYTES)), "encoding": "base64"}),
    "har stream": har({"text": SENT_TEXT}, {"text": base64(STREAM), "encoding": "base64"}),
    "har br": har(
        {"text": SENT_TEXT},
        {"text": base64(brotli.compress(GOT_BYTES)), "encoding": "base64"},
        content_encoding="br",
    ),
    "polly": har(
        {"text": SENT_TEXT},
        {
            "text": json.dumps([base64(packed(GOT_BYTES)[:30]), base64(packed(GOT_BYTES)[30:])]),
            "encoding": "base64",
            "_isBinary": True,
        },
    ),
    "polly hex": har(
        {"text": SENT_TEXT}, {"text": json.dumps([packed(GOT_BYTES).hex()]), "_isBinary": True}
    ),
    "nock": json.dumps(
        [
            {
                "scope": "https://llm.example:443",
                "method": "POST",
                "path": "/v1/chat/completions",
                "body": SENT,
                "status": 200,
                "response": [packed(GOT_BYTES).hex()],
                "rawHeaders": ["Content-Encoding", "gzip"],
            }
        ]
        * 2
    ),
    "nock br": json.dumps(
        [
            {
                "scope": "https://llm.example:443",
                "method": "POST",
                "path": "/v1/chat/completions",
                "body": SENT,
                "status": 200,
                "response": [brotli.compress(GOT_BYTES).hex()],
                "rawHeaders": {"content-encoding": "br"},
            }
        ]
        * 2
    ),
    "wiremock": json.dumps(
        {
            "mappings": [
                {
                    "request": {
                        "url": "/v1/chat/completions",
                        "method": "POST",
                        "bodyPatterns": [{"equalToJson": SENT_TEXT}],
                    },
                    "response": {"status": 200, "base64Body": base64(GOT_BYTES)},
                }
            ]
        }
    ),
    "wiremock journal": json.dumps(
        {
            "requests": [
                {
                    "request": {"url": "/v1/chat/completions", "bodyAsBase64": base64(SENT_BYTES)},
                    "response": {"status": 200, "bodyAsBase64": base64(GOT_BYTES)},
                }
            ]
        }
    ),
    "mitmproxy": pair(
        {"content": SENT_TEXT}, {"content": base64(packed(GOT_BYTES)), "status_code": 200}
    ),
    "deflate": pair(
        {"body": SENT},
        {
            "body": {"base64_string": base64(deflated(GOT_BYTES))},
            "headers": {"Content-Encoding": "deflate"},
        },
    ),
    "zlib": pair(
        {"body": SENT},
        {
            "body": {"base64_string": base64(zlib.compress(GOT_BYTES))},
            "headers": {"content-encoding": ["deflate"]},
        },
    ),
    "zstd": pair({"body": SENT}, {"body": {"base64_string": base64(zstd.compress(GOT_BYTES))}}),
    "unpacked br": pair({"body": SENT}, {"body": GOT_TEXT, **LISTED}),
    "unpacked br bytes": pair(
        {"body": SENT}, {"body": {"base64_string": base64(GOT_BYTES)}, **LISTED}
    ),
    "lambda": pair(
        {"body": base64(SENT_BYTES), "isBase64Encoded": True},
        {"body": base64(GOT_BYTES), "isBase64Encoded": True},
    ),
    "latin-1": pair({"body": SENT}, {"body": packed(GOT_BYTES).decode("latin-1")}),
    "base64 text": pair({"body": SENT}, {"body": base64(GOT_BYTES)}),
}


def events(text):
    source = Source("log.json", data=text.encode())
    reader = readers()["openai-chat"]
    assert reader.recognise(source), "it is claimed"
    return list(read_events(reader, source))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_body_gives_the_answer(form):
    found = [event for event in events(FORMS[form]) if isinstance(event, Conversation)]
    assert found, events(FORMS[form])
    for conversation in found:
        texts = [[part.text for part in one.parts] for one in conversation.messages]
        assert texts == [["Malmö?"], [ANSWER]]
        assert not conversation.problems


@pytest.mark.parametrize(
    "name", ["anthropic-messages", "bedrock-converse", "gemini-api", "openai-responses"]
)
def test_the_keys_of_a_packed_body_are_known(name):
    keys = shipped_keys(name)
    assert keys is not None
    assert {"string", "base64_string"} <= keys.known


CORRUPT = {
    "gzip": packed(GOT_BYTES)[:-20],
    "zstd": zstd.compress(GOT_BYTES)[:-3],
    "br": brotli.compress(GOT_BYTES)[:-3],
    "deflate": deflated(GOT_BYTES)[:-9],
    "zlib": zlib.compress(GOT_BYTES)[:-9],
    "utf-8": GOT_BYTES.replace("\u2019".encode(), b"\xe2"),
    "empty": b"",
}


@pytest.mark.parametrize("kind", CORRUPT)
def test_a_corrupt_body_is_a_reject(kind):
    encoding = {"br": "br", "deflate": "deflate", "zlib": "deflate"}.get(kind, "")
    body = {"base64_string": base64(CORRUPT[kind])}
    response = {"body": body, "headers": {"content-encoding": encoding}}
    found = events(pair({"body": SENT}, response))
    assert [type(event) for event in found] == [Problem] * 2
    assert {event.code for event in found} == {"no_response"}


@pytest.mark.parametrize(
    ("headers", "coding"),
    [
        ({"Content-Encoding": "GZIP"}, "gzip"),
        ({"content-encoding": ["identity", "br"]}, "br"),
        ([{"name": "content-encoding", "value": "a, zstd"}], "zstd"),
        ([["content-encoding", "br"]], "br"),
        (["a", "content-encoding", "content-encoding", "br"], "br"),
        ({"content-encoding": 3}, ""),
        ({"authorization": "content-encoding"}, ""),
        (None, ""),
        ("gzip", ""),
    ],
)
def test_the_coding_is_found_in_any_form_of_headers(headers, coding):
    assert content_encoding(headers) == coding


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip", "zstd", ""])
def test_clear_texts_stay_what_they_are(coding):
    assert read_body(GOT_TEXT, coding).value == GOT
    assert read_body(["data: {}", "data: [DONE]"], coding).events == ({},)
    assert read_body({"text": "x", "other": 1}, coding).value == {"text": "x", "other": 1}
