"""An interrupted installation continues later: no package is downloaded twice."""

import base64
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

TEST_TIMEOUT = 60


def packed(name: str, depends: dict[str, str]) -> bytes:
    """A package as npm packs one."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        body = json.dumps({"name": name, "version": "1.0.0", "dependencies": depends}).encode()
        head = tarfile.TarInfo("package/package.json")
        head.size = len(body)
        archive.addfile(head, io.BytesIO(body))
    return data.getvalue()


class Registry(ThreadingHTTPServer):
    """Serves two packages. The one that is requested second is not sent before `opened` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.packages = {"mine": packed("mine", {"other": "1.0.0"}), "other": packed("other", {})}
        self.depends = {"mine": {"other": "1.0.0"}, "other": dict[str, str]()}
        self.asked: Counter[str] = Counter()
        self.served: list[str] = []
        self.stuck = threading.Event()
        self.opened = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def described(self, name: str) -> bytes:
        digest = base64.b64encode(hashlib.sha512(self.packages[name]).digest()).decode()
        dist = {"integrity": f"sha512-{digest}", "tarball": f"{self.url}{name}/-/{name}-1.0.0.tgz"}
        version = {"name": name, "version": "1.0.0", "dependencies": self.depends[name], "dist": dist}
        return json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()


class _Answer(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        name, _, rest = self.path.strip("/").partition("/")
        if name not in self.server.packages:
            self.send_error(404)
            return
        self.server.asked[self.path] += 1
        if rest and self.server.served and not self.server.opened.is_set():
            self.server.stuck.set()
            self.server.opened.wait(TEST_TIMEOUT)
            return  # the client has gone
        if rest:
            self.server.served.append(name)
        body = self.server.packages[name] if rest else self.server.described(name)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server
        finally:
            server.opened.set()
            server.shutdown()
            serving.join()


def _until(done: Callable[[], bool]) -> None:
    turn = threading.Event()
    for _ in range(TEST_TIMEOUT * 100):
        if done():
            return
        turn.wait(0.01)
    raise AssertionError("the condition never became true")


def test_packages_downloaded_before_an_interruption_are_kept(tmp_path: Path, registry: Registry) -> None:
    """Ctrl-C during a download: nothing counts as installed, and the next try downloads only the rest."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "freehold.toml").write_text('[agents.mine]\npackage = "npm:mine@1.0.0"\ncommand = "mine"\n')
    argv = [sys.executable, "-m", "freehold.cli.main", "agents", "add", "mine", "--home", str(home)]
    env = {**os.environ, "npm_config_registry": registry.url, "npm_config_maxsockets": "1", "NO_PROXY": "*"}
    first = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert registry.stuck.wait(TEST_TIMEOUT)
    cache = home / "agents" / ".cache" / "npm"
    (came,) = registry.served
    index = cache / "_cacache" / "index-v5"
    _until(lambda: any(f"/{came}-1.0.0.tgz" in path.read_text() for path in index.rglob("*") if path.is_file()))
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=TEST_TIMEOUT)
    assert first.returncode == 130
    assert not (home / "agents" / "mine").exists()
    assert cache.exists()
    registry.opened.set()
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=TEST_TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert (home / "agents" / "mine" / "node_modules" / "other" / "package.json").exists()
    asked = {name: registry.asked[f"/{name}/-/{name}-1.0.0.tgz"] for name in registry.packages}
    assert asked == {name: 1 if name == came else 2 for name in registry.packages}
    assert not cache.exists()
    assert not list((home / "agents").glob(".new-*"))
