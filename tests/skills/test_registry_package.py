"""Skills of a package come from its registry with its exact version, and no code of the package runs."""

import base64
import hashlib
import io
import json
import os
import tarfile
import urllib.parse
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.credentials.private_servers import serve_plain
from tests.skills.skill_folders import skill_text, write_zip

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.skills import registry_package
from freehold.skills.cli import command
from freehold.skills.library import SkillLibrary
from freehold.skills.sources import read_source

SCRIPTS = ("preinstall", "install", "postinstall", "prepare", "prepack", "postpack")


def pack(files: Mapping[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def npm_package(name: str, version: str, mark: Path) -> bytes:
    """A package with one skill, and with a script that leaves a mark at every step."""
    head = {"name": name, "version": version, "scripts": dict.fromkeys(SCRIPTS, f"touch {mark}")}
    skill = skill_text(description=f"Makes charts as {version} does.")
    return pack({"package.json": json.dumps(head), "skills/charts/SKILL.md": skill})


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "code-of-the-package-ran"


@pytest.fixture
def npm_registry(tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry with the versions 1.0.0 and 1.1.0 of `some-skills` and `@team/some-skills`, which npm here uses."""
    packages = {
        (name, version): npm_package(name, version, mark)
        for name in ("some-skills", "@team/some-skills")
        for version in ("1.0.0", "1.1.0")
    }

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, _, version = urllib.parse.unquote(self.path).strip("/").partition("/-/")
            if (name, version) in packages:
                self.answer(packages[name, version])
            elif any(one == name for one, _ in packages):
                self.answer(json.dumps(self.describe(name)).encode())
            else:
                self.send_error(404)

        def describe(self, name: str) -> dict[str, object]:
            versions = {}
            for (one, version), archive in packages.items():
                if one == name:
                    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
                    place = f"http://127.0.0.1:{self.headers['host'].rpartition(':')[2]}/{name}/-/{version}"
                    dist = {"tarball": place, "integrity": f"sha512-{digest}"}
                    versions[version] = {"name": name, "version": version, "dist": dist}
            return {"name": name, "dist-tags": {"latest": "1.1.0"}, "versions": versions}

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    with serve_plain(Registry) as port:
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{port}/")
        monkeypatch.setenv("npm_config_userconfig", os.devnull)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip here takes packages from, and from nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def write_wheel(folder: Path, version: str) -> None:
    info = f"some_skills-{version}.dist-info"
    files = {
        "some_skills/charts/SKILL.md": skill_text(description=f"Makes charts as {version} does."),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: some-skills\nVersion: {version}\nRequires-Dist: not-there\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    write_zip(folder / f"some_skills-{version}-py3-none-any.whl", {path: text.encode() for path, text in files.items()})


@pytest.mark.parametrize("name", ["some-skills", "@team/some-skills"])
def test_a_package_of_npm_is_read_with_its_version_and_none_of_its_code_runs(
    name: str, npm_registry: None, mark: Path
) -> None:
    (newest,) = read_source(f"npm:{name}")
    (pinned,) = read_source(f"npm:{name}@1.0.0")
    assert (newest.source.kind, newest.source.place) == ("package", f"npm:{name}@1.1.0")
    assert (pinned.source.place, pinned.source.part) == (f"npm:{name}@1.0.0", "package/skills/charts")
    assert pinned.package.front_matter.description == "Makes charts as 1.0.0 does."
    assert not mark.exists()
    for absent in (f"npm:{name}@9.9.9", "npm:not-there"):
        with pytest.raises(FreeholdError) as caught:
            read_source(absent)
        assert caught.value.code == "skill.not-fetched"


def test_a_package_of_pypi_is_read_with_its_version_and_without_what_it_needs(wheels: Path) -> None:
    for version in ("1.0", "1.1"):
        write_wheel(wheels, version)
    (newest,) = read_source("pypi:some-skills")
    (pinned,) = read_source("pypi:some-skills==1.0")
    assert (newest.source.kind, newest.source.place) == ("package", "pypi:some_skills==1.1")
    assert (pinned.source.place, pinned.source.part) == ("pypi:some_skills==1.0", "some_skills/charts")
    assert pinned.package.front_matter.description == "Makes charts as 1.0 does."


def test_a_source_package_of_pypi_is_refused_and_does_not_run(wheels: Path, mark: Path) -> None:
    setup = f"open({str(mark)!r}, 'w')\n"
    (wheels / "some_skills-1.0.tar.gz").write_bytes(pack({"setup.py": setup, "SKILL.md": skill_text()}))
    with pytest.raises(FreeholdError, match="cannot be fetched"):
        read_source("pypi:some-skills==1.0")
    assert not mark.exists()


def test_a_registry_program_that_leaves_other_than_one_archive_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for leaves in ("true", "touch a-1.0.0.tgz b-1.0.0.tgz"):
        monkeypatch.setattr(registry_package, "find_npm", lambda leaves=leaves: ["/bin/sh", "-c", leaves])
        with pytest.raises(FreeholdError, match="archives instead of one"):
            read_source("npm:some-skills@1.0.0")


@pytest.mark.parametrize(
    "place",
    [
        "npm:",
        "npm:--registry=http://evil.example",
        "npm:../elsewhere",
        "npm:someone/repository",
        "npm:https://evil.example/x.tgz",
        "npm:x@file:/etc",
        "npm:x y",
        "pypi:-r/etc/passwd",
        "pypi:x @ https://evil.example/x.whl",
        "pypi:./x",
        "pypi:x>=1",
    ],
)
def test_what_is_no_name_of_a_package_is_given_to_no_program(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], folder: str, place: str) -> None:
        raise AssertionError(command)

    monkeypatch.setattr(registry_package, "_run", run)
    with pytest.raises(FreeholdError, match="is not a package"):
        read_source(place)


def test_a_skill_of_a_package_is_added_and_updated_by_the_command(
    tmp_path: Path, npm_registry: None, mark: Path
) -> None:
    home = Home(tmp_path / "home", tmp_path / "run")
    home.root.mkdir(mode=0o700)
    home.manifest.write_text("")

    def invoke(*words: str, answer: str = "", code: int = 0) -> str:
        done = CliRunner().invoke(command, [*words, "--home", str(home.root)], input=answer)
        assert done.exit_code == code, done.output
        return done.output

    library = SkillLibrary(home)
    invoke("add", "npm:some-skills@1.0.0", answer="n\n", code=1)
    assert library.read_lock().skills == {}
    invoke("add", "npm:some-skills@1.0.0", answer="y\n")
    assert library.find_source("charts").place == "npm:some-skills@1.0.0"
    said = invoke("update", "charts", answer="n\n", code=1)
    assert "-description: Makes charts as 1.0.0 does." in said
    assert "+description: Makes charts as 1.1.0 does." in said
    assert library.find_source("charts").place == "npm:some-skills@1.0.0"
    invoke("update", "charts", answer="y\n")
    assert library.find_source("charts").place == "npm:some-skills@1.1.0"
    assert not mark.exists()
