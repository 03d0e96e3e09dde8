"""Features declare themselves, and every declaration leads to code that exists."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.features import Feature, find_feature, list_features, load_reference
from freehold.features.registry import DECLARATIONS
from freehold.manifest import Manifest
from freehold.manifest.sections.base import Section

WEB_FEATURES = Path(__file__).parents[2] / "web" / "src" / "features"


def references(feature: Feature) -> Iterator[str]:
    optional = (feature.program, feature.health, feature.service, feature.tools, feature.metrics)
    yield feature.section
    yield from (feature.routes,) if isinstance(feature.routes, str) else feature.routes or ()
    yield from (reference for reference in optional if reference is not None)
    yield from feature.commands.values()


@pytest.mark.parametrize("feature", list_features(), ids=lambda feature: feature.name)
def test_every_reference_of_a_feature_leads_to_something_callable(feature: Feature) -> None:
    assert list(references(feature))
    for reference in references(feature):
        assert callable(load_reference(reference)), reference


@pytest.mark.parametrize("feature", list_features(), ids=lambda feature: feature.name)
def test_the_manifest_has_the_section_of_every_feature(feature: Feature) -> None:
    section = load_reference(feature.section)
    assert issubclass(section, Section)
    assert isinstance(Manifest().section(section), section)
    assert feature.name in Manifest.model_fields


@pytest.mark.parametrize("feature", list_features(), ids=lambda feature: feature.name)
def test_the_control_center_has_the_pages_of_every_feature(feature: Feature) -> None:
    """The page is in the web client's folder of the same name, and says the same path and title."""
    declaration = WEB_FEATURES / feature.name / "page.ts"
    text = declaration.read_text() if feature.pages else ""
    for page in feature.pages:
        assert f'path: "{page.path}"' in text
        assert f'title: "{page.title}"' in text


def test_a_section_that_no_feature_declares_is_refused() -> None:
    class StrangeSection(Section):
        pass

    with pytest.raises(LookupError, match="StrangeSection"):
        Manifest().section(StrangeSection)


def test_an_unknown_feature_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FreeholdError) as caught:
        find_feature("teleport")
    assert "ssh" in caught.value.hint


def test_listing_features_imports_only_their_declarations() -> None:
    """Every process lists them: a feature that is off must cost nothing."""
    script = (
        "import sys; from freehold.features import list_features; list_features();"
        "print(*[name for name in sys.modules if name.startswith('freehold.')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = [reference.partition(":")[0] for reference in DECLARATIONS]
    packages = {module.rpartition(".")[0] for module in modules}
    extra = [
        name
        for name in done.stdout.split()
        if not name.startswith(("freehold.features", "freehold.errors"))
        and name.count(".") > 1
        and name not in packages
    ]
    assert extra == modules


def test_a_house_without_a_feature_has_no_trace_of_it() -> None:
    """Without its line in the registry there is no section, no check, no command and no route."""
    script = """
import freehold.features.registry as registry
registry.DECLARATIONS = ()
from freehold.manifest import Manifest
from freehold.manifest.checks import load_checks
from freehold.cli.main import freehold_command
import click, sys
assert "ssh" not in Manifest.model_fields
assert "W701" not in [check.code for check in load_checks()]
assert "ssh" not in freehold_command.list_commands(click.Context(freehold_command))
print(*[name for name in sys.modules if name.startswith("freehold.ssh")])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
