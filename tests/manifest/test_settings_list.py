"""Every setting is listed with its value, where it is, and whether the page may change it."""

from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.manifest import load_manifest
from freehold.manifest.settings_list import ListedSetting, check_changeable, list_settings
from freehold.manifest.shape import list_keys


def listed(path: Path, environ: dict[str, str] | None = None) -> dict[str, ListedSetting]:
    manifest = load_manifest(path, {}).manifest
    sections = list_settings(path, environ or {}, manifest, home=path.parent)
    return {one.key: one for section in sections for one in section.settings}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "freehold.toml"
    path.write_text(
        '# mine\n[history]\nquota = "2GiB"\n\n[models.local]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\n'
    )
    return path


def test_every_key_of_the_model_is_listed(path: Path) -> None:
    found = listed(path)
    for key, _ in list_keys():
        if "<name>" not in key and "[]" not in key:
            assert ".".join(key) in found
    assert all(one.meaning for one in found.values() if one.kind != "other" or one.default is not None)


def test_a_setting_says_where_it_is_and_what_it_is_without_it(path: Path) -> None:
    (path.parent / "freehold.overlay.toml").write_text('[agents]\ndefault = "claude"\n')
    found = listed(path, {"FREEHOLD_GATEWAY_PORT": "3001"})
    quota = found["history.quota"]
    assert (quota.value, quota.place, quota.file, quota.line, quota.kind) == (
        '"2GiB"',
        "file",
        "freehold.toml",
        3,
        "size",
    )
    assert (found["agents.default"].place, found["agents.default"].file) == ("overlay", "freehold.overlay.toml")
    assert (found["gateway.port"].place, found["gateway.port"].can_change) == ("environment", False)
    assert found["models.local.base_url"].line == 7
    assert found["git.name"].place == "default"


def test_a_value_that_waits_for_a_restart_is_marked(path: Path) -> None:
    in_force = load_manifest(path, {}).manifest
    path.write_text('[history]\nquota = "3GiB"\n')
    sections = list_settings(path, {}, in_force, home=path.parent)
    found = {one.key: one.waits for section in sections for one in section.settings}
    assert [key for key, waits in found.items() if waits] == ["history.quota"]


@pytest.mark.parametrize(
    "key",
    ["owner.did", "gateway.public_url", "gateway.port", "computer.backend", "computer.mounts", "history.folders", "history.ignore", "keeper.port", "models.x.key",
     "security.exceptions", "slots.beads.mode", "nothing.here", "", "agents.claude.command"],
)  # fmt: skip
def test_what_opens_a_door_is_not_changed_in_the_page(key: str) -> None:
    with pytest.raises(FreeholdError, match="cannot be changed here"):
        check_changeable(key)
