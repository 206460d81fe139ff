"""Paths within the project."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DATA = ROOT / "data"
CASES = TESTS / "readers"
"""A folder for each reader, with a folder for each case."""
