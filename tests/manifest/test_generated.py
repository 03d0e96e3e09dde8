"""The references are made from the model, and drift is seen."""

import json
import tomllib
from functools import partial
from pathlib import Path

import jsonschema_rs
import pytest
from tests.manifest.cases import CASES
from tests.manifest.machine import look
from tools import generate
from tools.generated import GENERATED

from freehold.manifest import Manifest
from freehold.manifest.checks import RESERVED, load_checks
from freehold.manifest.environment import NAMED_VARIABLES
from freehold.manifest.shape import list_keys
from freehold.manifest.template import starter_manifest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The references that are looked at here. `make check` makes all, and so it is seen when one differs each time."""
    return {name: GENERATED[name]() for name in ("docs/manifest.md", "docs/freehold.schema.json", "docs/cli.md")}


@pytest.mark.parametrize("name", ["docs/manifest.md", "docs/freehold.schema.json"])
def test_the_references_of_the_manifest_are_up_to_date(name: str, made: dict[str, str]) -> None:
    assert (ROOT / name).read_text() == made[name], "mend it with: make generated"


def test_the_reference_has_every_key_variable_and_code(made: dict[str, str]) -> None:
    text = made["docs/manifest.md"]
    for path, field in list_keys():
        assert f"| `{path[-1]}` |" in text
        assert field.description
        assert field.description in text
    for name in (*NAMED_VARIABLES, "FREEHOLD_HOME", "FREEHOLD_<SECTION>_<KEY>"):
        assert f"`{name}`" in text
    for code in (*RESERVED, *(rule.code for rule in load_checks())):
        assert f"| `{code}` |" in text


def test_every_key_has_a_sentence() -> None:
    for path, field in list_keys():
        assert field.description, path
        assert field.description[0].isupper() or field.description[0] == "`", path
        assert field.description.endswith("."), path


def test_the_schema_takes_what_the_loader_takes() -> None:
    validator = jsonschema_rs.validator_for(Manifest.model_json_schema())
    texts = [case.keeps for case in CASES.values()] + ["", starter_manifest({})]
    for text in texts:
        tree = json.loads(json.dumps(tomllib.loads(text), default=str))
        assert validator.is_valid(tree), (text, list(validator.iter_errors(tree)))


@pytest.mark.parametrize(
    "text",
    [
        "[gateway]\nprot = 1",
        "[gateway]\nport = 'x'",
        "[slots]\nbeads = 'x'",
        "[egress]\nmode = 'x'",
        "[computer.limits]\nmemory = 'x'",
        "[agents]\ndefualt = 'x'",
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(text: str) -> None:
    assert look(text).errors
    assert not jsonschema_rs.validator_for(Manifest.model_json_schema()).is_valid(tomllib.loads(text))


def test_drift_is_named_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str], made: dict[str, str]) -> None:
    files = {name: partial(str, text) for name, text in made.items()}
    assert generate.main(["--check"], tmp_path, files) == 1
    said = capsys.readouterr().err
    assert all(name in said for name in files)
    assert "make generated" in said
    assert not (tmp_path / "docs").exists()

    assert generate.main([], tmp_path, files) == 0
    assert generate.main(["--check"], tmp_path, files) == 0
    assert {name: (tmp_path / name).read_text() for name in files} == made
    capsys.readouterr()

    with (tmp_path / "docs/manifest.md").open("a") as file:
        file.write("by hand\n")
    assert generate.main(["--check"], tmp_path, files) == 1
    assert "docs/manifest.md" in capsys.readouterr().err


def test_the_cli_reference_has_every_verb_with_an_example(made: dict[str, str]) -> None:
    text = made["docs/cli.md"]
    assert "### `freehold check`" in text
    assert "freehold check draft.toml --json" in text
