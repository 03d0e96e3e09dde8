"""An agent from PyPI that needs a newer Python than the computer's gets one: fetched once, by its hash, never at boot."""

import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest
from tests.agents.test_installation import manifest, write_wheel

from freehold.agents.catalogue import managed_python, pypi
from freehold.agents.catalogue.installation import find_problem, install_agent
from freehold.agents.catalogue.managed_python import DebianPackage, PythonLock, fetch_python, is_python_ready
from freehold.agents.catalogue.registry import find_agent
from freehold.errors import FreeholdError
from freehold.home import Home

# The loader of the packages below starts the Python of the tests in the place of a program of its own.
LOADER = f'#!/bin/sh\nshift 5\nexec {sys.executable} "$@"\n'
FILES = {
    "./usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": LOADER,
    "./usr/lib/x86_64-linux-gnu/libc.so.6": "library",
    "./usr/bin/python3.13": "program",
    "./usr/lib/python3.13/os.py": "library",
    "./usr/lib/python3.13/EXTERNALLY-MANAGED": "no",
    "./usr/share/doc/python3.13/README": "no",
    "./etc/python3.13/sitecustomize.py": "no",
}


def write_deb(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
        out = tarfile.TarInfo("./usr/lib/python3.13/escape.py")
        out.type, out.linkname = tarfile.SYMTYPE, "/etc/python3.13/sitecustomize.py"
        archive.addfile(out)
    parts = {b"debian-binary": b"2.0\n", b"control.tar.xz": b"odd", b"data.tar.xz": data.getvalue()}
    package = b"!<arch>\n"
    for part, content in parts.items():
        package += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (part, 0, 0, 0, 0o644, len(content))
        package += content + b"\n" * (len(content) % 2)
    return package


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "agents").mkdir()
    return Home(tmp_path, tmp_path / "run")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is served as Debian's archive is, with one package that the lock names."""
    folder = tmp_path / "debian"
    folder.mkdir()
    package = write_deb(FILES)
    (folder / "python.deb").write_bytes(package)
    lock = PythonLock(
        "3.13.5", "now", (DebianPackage("python.deb", hashlib.sha256(package).hexdigest(), len(package)),)
    )

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words: object) -> None:
            super().__init__(*words, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, format: str, *words: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(managed_python, "SOURCES", (f"{address}/gone", address))
    monkeypatch.setattr(managed_python, "read_lock", lambda: lock)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_shipped_lock_names_every_part_by_its_hash_for_both_machines() -> None:
    found = json.loads(Path(managed_python.__file__).with_suffix(".json").read_bytes())
    for architecture in ("amd64", "arm64"):
        packages = found[architecture]
        assert len({one["sha256"] for one in packages}) == len(packages) > 10
        assert all(len(one["sha256"]) == 64 and one["path"].startswith("pool/main/") for one in packages)
        assert any("libc6_" in one["path"] for one in packages)


def test_it_is_put_together_from_what_the_lock_names_and_starts_from_wherever_it_stands(
    home: Home, archive: Path
) -> None:
    program = fetch_python(home, lambda what, done, total: None)
    place = home.agents / ".python"
    found = sorted(str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir())
    assert found == [
        "bin/python3",
        "freehold.json",
        "lib/python3.13/os.py",
        "libraries/ld-linux-x86-64.so.2",
        "libraries/libc.so.6",
        "program/python",
    ]
    assert subprocess.run([program, "-c", "print(7)"], capture_output=True, check=True, text=True).stdout == "7\n"
    (archive / "python.deb").unlink()
    assert fetch_python(home, lambda what, done, total: None) == program, "it is fetched once"


def test_a_part_with_another_hash_is_refused_and_leaves_nothing(home: Home, archive: Path) -> None:
    (archive / "python.deb").write_bytes(write_deb({**FILES, "./usr/lib/python3.13/os.py": "evil"}))
    with pytest.raises(FreeholdError, match="its hash is another"):
        fetch_python(home, lambda what, done, total: None)
    assert not is_python_ready(home)
    assert [path.name for path in home.agents.iterdir()] == []


def test_an_agent_that_needs_a_newer_python_gets_it_and_its_commands_start_with_it(
    home: Home, archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, requires in (("tea", ">=3.11"), ("old", ">=3.8")):
        folder = tmp_path / "simple" / name
        folder.mkdir(parents=True)
        write_wheel(folder, name, f"[console_scripts]\n{name}-acp = {name}:serve\n")
        link = f'<a href="{name}-1.0-py3-none-any.whl" data-requires-python="{escape(requires)}">{name}-1.0-py3-none-any.whl</a>'
        (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>")
    for variable in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    monkeypatch.setattr(pypi, "_python_version_inside", lambda: "3.9")
    text = (
        '[agents.mine]\npackage = "pypi:tea==1.0"\ncommand = "tea-acp"\n'
        '[agents.plain]\npackage = "pypi:old==1.0"\ncommand = "old-acp"\n'
        '[agents.nobody]\npackage = "pypi:nobody==1.0"\ncommand = "nobody"\n'
    )
    found = manifest(home, text)
    install_agent(home, find_agent(found, "plain"))
    assert not is_python_ready(home), "it is fetched only for an agent that needs it"
    assert (home.agents / "plain/bin/old-acp").read_text().startswith("#!/usr/bin/python3\n")
    with pytest.raises(FreeholdError, match="No matching distribution"):
        install_agent(home, find_agent(found, "nobody"))
    assert not is_python_ready(home)
    agent = find_agent(found, "mine")
    install_agent(home, agent)
    assert (home.agents / "mine/bin/tea-acp").read_text().startswith("#!/opt/agents/.python/bin/python3\n")
    assert "PYTHONPATH" not in agent.launch(None).env, "programs that the agent runs would find its packages"
    assert find_problem(home, agent) is None
    (home.agents / ".python/freehold.json").unlink()
    assert "Python that it runs with is missing" in str(find_problem(home, agent))
    install_agent(home, agent)
    assert find_problem(home, agent) is None
