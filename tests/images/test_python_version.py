"""`image.python`: a check of Debian's version, which says what can be had."""

from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.images import resolution
from freehold.images.lock import LockedPackage
from freehold.images.pool import PackagePool
from freehold.images.resolution import choose_packages
from freehold.images.section import ImageSection


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The suites whose packages were fetched. Debian has Python 3.11.2 in each of them."""
    suites: list[str] = []

    def fetch(wanted: set[str], suite: str, pool: PackagePool) -> list[LockedPackage]:
        suites.append(suite)
        return [LockedPackage("deb", "python3", "3.11.2-1+b1", "python3_3.11.2-1+b1_amd64.deb", "0" * 64, 1)]

    monkeypatch.setattr(resolution, "fetch_debs", fetch)
    monkeypatch.setattr(resolution, "read_architecture", lambda: "amd64")
    return suites


def choose(tmp_path: Path, suite: str, python: str | None) -> None:
    choose_packages(ImageSection(suite=suite, python=python), PackagePool(tmp_path), list)


@pytest.mark.parametrize("python", [None, "3", "3.11", "3.11.2"])
def test_the_version_of_debian_is_accepted_with_as_many_parts_as_are_given(
    tmp_path: Path, fetched: list[str], python: str | None
) -> None:
    choose(tmp_path, "bookworm", python)
    assert fetched == ["bookworm"]


@pytest.mark.parametrize(
    ("suite", "python", "message", "hint"),
    [
        (
            "bookworm",
            "3.13",
            "image.python is '3.13', and Debian bookworm has Python 3.11",
            'Debian trixie has it: suite = "trixie", with package sources of trixie on this machine',
        ),
        (
            "trixie",
            "3.12",
            "image.python is '3.12', and Debian trixie has Python 3.13",
            "An image has the Python of its Debian: 3.11 in bookworm and 3.13 in trixie. Choose one of them, or leave"
            " image.python out",
        ),
    ],
)
def test_another_version_is_refused_before_anything_is_fetched_and_the_error_says_what_there_is(
    tmp_path: Path, fetched: list[str], suite: str, python: str, message: str, hint: str
) -> None:
    with pytest.raises(FreeholdError) as refused:
        choose(tmp_path, suite, python)
    assert (refused.value.code, refused.value.message, refused.value.hint) == ("image.no-python", message, hint)
    assert fetched == []


@pytest.mark.parametrize(("suite", "python"), [("bookworm", "3.11.9"), ("sid", "3.12")])
def test_what_is_known_only_from_the_package_is_compared_with_it(
    tmp_path: Path, fetched: list[str], suite: str, python: str
) -> None:
    with pytest.raises(FreeholdError, match=rf"image.python is '{python}', and Debian {suite} has Python 3.11.2"):
        choose(tmp_path, suite, python)
    assert fetched == [suite]
