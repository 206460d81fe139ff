"""The reader of zip members: methods that zipfile cannot unpack, and malicious archives."""

import io
import struct
import sys
import zipfile
import zlib

import pytest

from builder.problem import Problem
from builder.sources import zip_file as _zip
from builder.sources.source import Source
from builder.sources.zip_file import first_name, member, members, sizes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def archive(*entries, flags=0):
    """Returns a zip of (name, method, packed bytes, the member's size, its checksum)."""
    body = directory = b""
    for name, method, packed, size, checksum in entries:
        common = struct.pack(
            "<HHHHHIIIHH", 63, flags, method, 0, 0x5C21, checksum, len(packed), size, len(name), 0
        )
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + common
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\x03\x04" + common + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def entry(name, data, method):
    packed = {0: lambda: data, 8: lambda: zlib.compress(data, wbits=-15)}.get(
        method, lambda: zstd.compress(data[:5]) + zstd.compress(data[5:])
    )()
    return name, method, packed, len(data), zlib.crc32(data)


def read(data, limit=1 << 20):
    source = Source("log.eval", data=data, max_record_bytes=limit)
    found = list(members(source))
    assert source.records_read == len(found)
    return [(name, got.code if isinstance(got, Problem) else got) for name, got in found]


@pytest.mark.parametrize("method", [0, 8, 93])
def test_each_method_is_unpacked(method):
    data = archive(entry("a", b"first member", method), entry("b", b"", method))
    assert read(data) == [("a", b"first member"), ("b", b"")]


def test_members_written_by_zipfile_are_unpacked():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("folder/", "")
        out.writestr("folder/x.json", "{}")
    assert read(buffer.getvalue()) == [("folder/x.json", b"{}")]
    assert first_name(Source("log.eval", data=buffer.getvalue())) == "folder/"


@pytest.mark.parametrize("method", [0, 8, 93])
def test_a_member_beyond_the_limit_is_not_unpacked_whole(method):
    name, _, packed, _, checksum = entry("bomb", b"0" * 5_000_000, method)
    small_in_the_directory = (name, method, packed, 10, checksum)
    data = archive(small_in_the_directory, entry("after", b"fine", 8))
    assert read(data, limit=1000) == [("bomb", "too_large"), ("after", b"fine")]


@pytest.mark.parametrize("method", [8, 93])
def test_a_member_that_ends_early_is_truncated(method):
    name, _, packed, size, checksum = entry("cut", bytes(range(256)) * 40, method)
    assert read(archive((name, method, packed[:-9], size, checksum))) == [("cut", "truncated")]


def test_unreadable_members_are_a_problem():
    name, method, packed, size, checksum = entry("a", b"some text", 8)
    assert read(archive((name, method, packed, size, checksum ^ 1))) == [("a", "unreadable")]
    assert read(archive((name, 12, packed, size, checksum))) == [("a", "unreadable")]
    assert read(archive((name, 93, b"no frame", size, checksum))) == [("a", "unreadable")]
    assert read(archive((name, method, packed, size, checksum), flags=1)) == [("a", "unreadable")]
    assert read(b"PK\x03\x04 and nothing more") == [("", "unreadable")]


def as_zip64(data):
    """Returns the archive with zip64 end records (APPNOTE 4.3.14, 4.3.15)."""
    body, end = data[:-22], data[-22:]
    count, size, at = struct.unpack("<HII", end[10:20])
    large = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, at)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(body), 1)
    all_ones = struct.pack("<HHII", 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    return body + large + locator + end[:8] + all_ones + end[20:]


@pytest.mark.parametrize("form", [bytes, as_zip64])
def test_sizes_are_those_of_the_directory_unless_it_is_too_long(form, monkeypatch):
    data = form(archive(entry("a", b"first member", 8), entry("folder/", b"", 0)))
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["a", "folder/"]
    assert list(sizes(Source("log.eval", data=data))) == [12]
    directory = 2 * 46 + len("a" + "folder/")
    monkeypatch.setattr(_zip, "MAX_DIRECTORY_BYTES", directory)
    assert list(sizes(Source("log.eval", data=data))) == [12]
    monkeypatch.setattr(_zip, "MAX_DIRECTORY_BYTES", directory - 1)
    assert list(sizes(Source("log.eval", data=data))) == []


def test_an_archive_that_cannot_be_read_or_holds_too_much_has_no_sizes(monkeypatch):
    data = archive(entry("a", b"x", 0), entry("b", b"y", 0))
    for bad in (b"", b"PK\x03\x04" * 20, data[:-1], data + b"a comment"):
        assert list(sizes(Source("log.eval", data=bad))) == []
    monkeypatch.setattr(_zip, "MAX_MEMBERS", 1)
    assert list(sizes(Source("log.eval", data=data))) == []


def test_a_member_read_by_name_is_not_counted():
    source = Source("log.eval", data=archive(entry("a", b"one", 8), entry("a", b"two", 8)))
    assert member(source, "a") == b"one"
    assert member(source, "b") is None
    assert source.records_read == 0
