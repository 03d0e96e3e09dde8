"""Changing one key keeps everything else as it was written."""

import os
import stat
import threading
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freehold.errors import FreeholdError
from freehold.manifest.edit import edit_manifest, edit_manifest_keys
from freehold.manifest.template import starter_manifest

TEXT = """\
# my Freehold

[gateway] # the door
host = "127.0.0.1"
port = 3001   # because 3000 is taken

# the keeper stays where it is
[keeper]
port = 8002

[[computer.mounts]]   # first
source = "~/a"
target = "/mnt/a"

[slots]
beads = { mode = "local" } # short
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    manifest = tmp_path / "freehold.toml"
    manifest.write_text(TEXT)
    return manifest


def test_one_value_changes_and_nothing_else(path: Path) -> None:
    edit_manifest(path, "gateway.port", 3002)
    assert path.read_text() == TEXT.replace("3001", "3002")


def test_a_new_key_stands_in_its_table_and_before_the_comment_of_the_next(path: Path) -> None:
    edit_manifest(path, "gateway.public_url", "https://a.example.com")
    assert path.read_text() == TEXT.replace("taken\n", 'taken\npublic_url = "https://a.example.com"\n')


def test_a_new_table_leaves_the_others_as_they_are(path: Path) -> None:
    edit_manifest(path, "computer.limits.memory", "1GiB")
    edit_manifest(path, "egress.mode", "deny")
    text = path.read_text()
    assert '\n[computer.limits]\nmemory = "1GiB"\n' in text
    assert text.endswith('\n[egress]\nmode = "deny"\n')
    assert all(line in text.splitlines() for line in TEXT.splitlines())


def test_a_table_that_is_written_in_several_places_gets_keys(tmp_path: Path) -> None:
    path = tmp_path / "freehold.toml"
    path.write_text('gateway.port = 3001\nssh.enabled = false # no\ngateway.host = "127.0.0.1"\n')
    edit_manifest(path, "gateway.public_url", "https://a.example.com")
    assert tomllib.loads(path.read_text()) == {
        "gateway": {"port": 3001, "host": "127.0.0.1", "public_url": "https://a.example.com"},
        "ssh": {"enabled": False},
    }
    assert "ssh.enabled = false # no" in path.read_text()


def test_a_table_that_is_written_in_several_places_gets_no_table_in_it(tmp_path: Path) -> None:
    path = tmp_path / "freehold.toml"
    path.write_text('computer.backend = "docker"\nssh.enabled = false\ncomputer.mounts = []\n')
    before = path.read_bytes()
    with pytest.raises(FreeholdError) as caught:
        edit_manifest(path, "computer.limits.memory", "1GiB")
    assert caught.value.code == "manifest.cannot-edit"
    assert path.read_bytes() == before


def test_an_inline_table_grows(path: Path) -> None:
    edit_manifest(path, "slots.beads.required", True)
    assert tomllib.loads(path.read_text())["slots"] == {"beads": {"mode": "local", "required": True}}
    assert "# short" in path.read_text()


def test_none_takes_a_key_out(path: Path) -> None:
    edit_manifest(path, "gateway.host", None)
    assert path.read_text() == TEXT.replace('host = "127.0.0.1"\n', "")
    edit_manifest(path, "models.nothing.key", None)
    assert path.read_text() == TEXT.replace('host = "127.0.0.1"\n', "")


def test_a_manifest_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "freehold.toml"
    edit_manifest(path, "gateway.port", 3002)
    assert tomllib.loads(path.read_text()) == {"gateway": {"port": 3002}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_manifest_that_others_could_read_no_longer_can_be(path: Path) -> None:
    path.chmod(0o644)
    edit_manifest(path, "gateway.port", 3002)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    edit_manifest(link, "gateway.port", 3002)
    assert link.is_symlink()
    assert "3002" in path.read_text()


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("gateway.prot", 1, "manifest.bad-value"),
        ("gateway.port", "3000", "manifest.bad-value"),
        ("gateway.port.more", 1, "manifest.bad-key"),
        ("not a key", 1, "manifest.bad-key"),
        ("", 1, "manifest.bad-key"),
        ("a = 1\nb", 1, "manifest.bad-value"),
    ],
)
def test_what_the_manifest_does_not_have_is_refused_and_nothing_written(
    path: Path, key: str, value: str | int, code: str
) -> None:
    with pytest.raises(FreeholdError) as caught:
        edit_manifest(path, key, value)
    assert caught.value.code == code
    assert caught.value.hint
    assert path.read_text() == TEXT
    assert list(path.parent.iterdir()) == [path]


def test_a_broken_manifest_is_left_alone(path: Path) -> None:
    path.write_text("[gateway")
    with pytest.raises(FreeholdError, match="not TOML"):
        edit_manifest(path, "gateway.port", 3002)
    assert path.read_text() == "[gateway"


def test_a_mistake_elsewhere_does_not_stand_in_the_way(path: Path) -> None:
    path.write_text("[gateway]\nprot = 1\n")
    edit_manifest(path, "gateway.port", 3002)
    assert tomllib.loads(path.read_text()) == {"gateway": {"prot": 1, "port": 3002}}


def test_a_full_disk_leaves_the_old_manifest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        edit_manifest(path, "gateway.port", 3002)
    assert path.read_text() == TEXT
    assert list(path.parent.iterdir()) == [path]


def test_two_writers_lose_nothing(path: Path) -> None:
    keys = ["gateway.port", "keeper.port", "ssh.port", "observe.metrics_port"]
    threads = [threading.Thread(target=edit_manifest, args=(path, key, 9000 + index)) for index, key in enumerate(keys)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tree = tomllib.loads(path.read_text())
    assert [tree["gateway"]["port"], tree["keeper"]["port"], tree["ssh"]["port"], tree["observe"]["metrics_port"]] == [
        9000,
        9001,
        9002,
        9003,
    ]


EDITS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["gateway.port", "keeper.port", "ssh.port", "computer.limits.processes"]), st.integers(1, 65535) | st.none()),
        st.tuples(st.sampled_from(["owner.handle", "gateway.host", "models.a.model", "agents.x.mode", "agents.default", "models.a.budget.day_cost"]).filter(lambda key: "cost" not in key), st.text(max_size=8).filter(lambda text: "\0" not in text) | st.none()),
        st.tuples(st.sampled_from(["egress.allow", "history.ignore"]), st.lists(st.sampled_from(["a.com", "b", ""]), max_size=3) | st.none()),
    ),
    max_size=8,
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS, start=st.sampled_from(["", TEXT, starter_manifest({}), "gateway.port = 1 # dotted\n[agents]\n"]))
def test_edits_do_what_a_dict_would_and_keep_every_comment(
    tmp_path: Path, edits: list[tuple[str, str | int | list[str] | None]], start: str
) -> None:
    path = tmp_path / "freehold.toml"
    path.write_text(start)
    model = tomllib.loads(start)
    for key, value in edits:
        edit_manifest(path, key, value)  # type: ignore[arg-type]
        at = model
        *tables, last = key.split(".")
        for table in tables:
            at = at.setdefault(table, {})
        if value is None:
            at.pop(last, None)
        else:
            at[last] = value
    text = path.read_text()
    assert without_empty(tomllib.loads(text)) == without_empty(model)
    for line in start.splitlines():
        if line.startswith("#"):
            assert line in text.splitlines()


def without_empty(value: object) -> object:
    if not isinstance(value, dict):
        return value
    below = {key: without_empty(inner) for key, inner in value.items()}
    return {key: inner for key, inner in below.items() if inner != {}}


def test_several_keys_are_changed_in_one_step_or_none_is(path: Path) -> None:
    edit_manifest_keys(path, {"models.near.kind": "openai", "models.near.key": "secret:near", "gateway.port": 3002})
    tree = tomllib.loads(path.read_text())
    assert tree["models"] == {"near": {"kind": "openai", "key": "secret:near"}}
    assert tree["gateway"]["port"] == 3002
    before = path.read_text()
    with pytest.raises(FreeholdError) as refused:
        edit_manifest_keys(path, {"gateway.port": 3003, "models.near.colour": "green"})
    assert refused.value.code == "manifest.bad-value"
    assert path.read_text() == before


def test_a_table_goes_and_its_comments_stay(path: Path) -> None:
    text = '[models.a]\nkind = "openai"\n\n[models.a.budget]\nday_cost = 5.0\n\n# the agents are fast\n[agents]\ndefault = "claude"\n'
    path.write_text(text)
    edit_manifest(path, "models.a", None)
    assert tomllib.loads(path.read_text()) == {"agents": {"default": "claude"}}
    assert "# the agents are fast\n[agents]\n" in path.read_text()


def test_what_was_added_and_removed_leaves_the_file_as_it_was(path: Path) -> None:
    before = path.read_text()
    edit_manifest_keys(path, {"models.near.kind": "openai", "models.near.key": "secret:near"})
    edit_manifest(path, "models.near", None)
    assert path.read_text().rstrip() == before.rstrip()
