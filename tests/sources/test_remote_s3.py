"""S3, with a local stand-in: the same bytes as from folders; faults are one clear line."""

import subprocess
import sys

import fsspec
import pytest
from support.logs.stores import data_of, names, stored
from support.places import DATA
from support.runs.builds import build, files

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # warnings of s3fs and moto
]


@pytest.fixture(scope="module")
def bucket():
    """Returns the address of an empty bucket on a local S3 server."""
    pytest.importorskip("s3fs", reason="the extra `s3` is not installed")
    moto = pytest.importorskip("moto.server", reason="moto, the stand-in for S3, is not installed")
    server = moto.ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3").mkdir("logs")
        yield "s3://logs"
    server.stop()


def test_s3_gives_the_same_bytes_with_several_workers(bucket, tmp_path):
    fsspec.filesystem("s3").put(str(DATA), f"{bucket}/data", recursive=True)
    assert build(tmp_path / "here", "--workers", "1") == 0
    command = [sys.executable, "-m", "builder", "build", f"{bucket}/data", "--workers", "2"]
    subprocess.run([*command, "-o", tmp_path / "there", "--quiet"], check=True)
    assert data_of(files(tmp_path / "here")) == data_of(files(tmp_path / "there"))
    assert names(f"{bucket}/data/**/*.jsonl") == names(f"{DATA}/**/*.jsonl")


def test_a_dataset_is_written_to_s3(bucket, cache, tmp_path):
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert build(f"{bucket}/out", "--workers", "1") == 0
    assert stored(fsspec.filesystem("s3"), "logs/out") == files(tmp_path / "here")


def test_an_unwritable_s3_is_reported_before_the_work(bucket, cache, capsys):
    assert build("s3://no-such-bucket/out", "--workers", "1") == 2
    assert "s3://no-such-bucket/out" in capsys.readouterr().err
    assert not fsspec.filesystem("s3").exists("no-such-bucket"), "no bucket is created"


def test_a_missing_bucket_is_one_clear_line(bucket, tmp_path, capsys):
    assert build(tmp_path / "out", inputs=["s3://no-such-bucket/x"]) == 2
    assert "s3://no-such-bucket/x" in capsys.readouterr().err
