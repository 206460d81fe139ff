"""Tells tokenizers of this machine from those that only the Hub has.

A dataset's manifest may name any tokenizer. What it names is loaded if it is here; a download is
left to the user, who names the tokenizer then.
"""

from __future__ import annotations

from pathlib import Path

from builder.qwen3.reference import EMBEDDED, is_path, reference


def is_here(name: str) -> bool:
    """Returns whether a target is loaded without the Hub: all but Hub ids that are not cached."""
    tokenizer = reference(name).tokenizer
    is_folder = is_path(tokenizer) or Path(tokenizer).expanduser().is_dir()
    return is_folder or tokenizer == EMBEDDED or _is_cached(tokenizer)


def not_here(name: str) -> str:
    """Returns what to do about a tokenizer that only a manifest names, and that is not here."""
    return (
        f"tokenizer {name!r}: not on this machine, and only the dataset's manifest names it:"
        f" `builder verify DATASET --tokenizer {name}` loads it from the Hub"
    )


def _is_cached(name: str) -> bool:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - only for Hub ids

    repository, _, revision = name.partition("@")
    try:
        folder = snapshot_download(repository, revision=revision or None, local_files_only=True)
    except Exception:  # the client raises many types for what is not an id, or not in its cache
        return False
    return (Path(folder) / "tokenizer.json").is_file()
