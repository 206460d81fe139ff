"""Where agents keep their logs on a machine."""

import json
import sys

import pytest

from builder.readers import installed_logs, readers
from builder.readers.homes import APPDATA, Home


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name in ("APPDATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_variable_moves_a_place(home):
    place = Home("A", "${A_DIR:-~/.a}/logs")
    (home / ".a" / "logs").mkdir(parents=True)
    (home / "moved [1]" / "logs").mkdir(parents=True)
    assert [*place.places({})] == [home / ".a" / "logs"]
    assert [*place.places({"A_DIR": str(home / "moved [1]")})] == [home / "moved [1]" / "logs"]


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".config"),
        ("darwin", "Library/Application Support"),
        ("win32", "AppData/Roaming"),
    ],
)
def test_applications_data(home, monkeypatch, platform, folder):
    monkeypatch.setattr(sys, "platform", platform)
    for editor in ("Code", "VSCodium"):
        (home / folder / editor / "User").mkdir(parents=True)
    found = [*Home("A", f"{APPDATA}/*/User").places({})]
    assert found == [home / folder / editor / "User" for editor in ("Code", "VSCodium")]


def test_every_place_is_inside_the_home_folder_or_the_data_of_applications():
    homes = [home for reader in readers().values() for home in reader.homes]
    assert len(homes) >= 18
    for home in homes:
        assert home.pattern.startswith(("~/", "${", APPDATA)), home


def test_logs_are_listed_once(home):
    (home / ".codex" / "sessions").mkdir(parents=True)
    (home / ".claude" / "projects").mkdir(parents=True)
    assert [*installed_logs()] == [
        ("Claude Code", home / ".claude" / "projects"),
        ("Codex", home / ".codex" / "sessions"),
    ]


def test_a_list_of_projects_names_their_logs(home):
    paths = [home / "deep" / "a" / "b" / "c", home / "elsewhere"]
    for path in (paths[0] / ".crush", paths[1] / "data"):
        path.mkdir(parents=True)
        (path / "crush.db").touch()
    projects = [
        {"path": str(paths[0]), "data_dir": str(paths[0] / ".crush")},
        {"path": str(paths[1]), "data_dir": "data"},
        {"path": str(home / "gone"), "data_dir": ""},
        "damaged",
    ]
    lists = home / ".local" / "share" / "crush" / "projects.json"
    lists.parent.mkdir(parents=True)
    lists.write_text(json.dumps({"projects": projects}))
    found = [place for agent, place in installed_logs() if agent == "Crush"]
    assert found == [paths[0] / ".crush" / "crush.db", paths[1] / "data" / "crush.db"]
    lists.write_text("{")
    assert [*installed_logs()] == []
