"""What does a credential cost a clone? Beside: git on this machine itself, with the password in its hand.

    python -m bench.credentials [--quick] [--json]

A repository of 50 MB of random bytes behind HTTPS and basic authentication (git's own `http-backend`) is cloned in turns:
directly on the host, and in a sealed computer through the relay of egress, which adds the password.
"""

import asyncio
import base64
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.credentials.private_servers import run_tls_git_server
from tests.egress.proxy_harness import Authority, FakeResolver, make_authority, pretend_public
from tests.git.git_server import PASSWORD, USER, GitServer

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.computer.contract.conventions import EGRESS_PORT
from freehold.egress import EgressService, EgressSettings
from freehold.egress.keyring import HostCredential, Keyring
from freehold.egress.names import parse_host
from freehold.egress.vault import Vault
from freehold.timeline import Timeline

MEGABYTES = 50
MAX_RATIO = 1.2
HOST = "git.test"


def fill(server: GitServer, folder: Path) -> None:
    bare = server.create("large")
    work = folder / "work"
    work.mkdir()
    for number in range(MEGABYTES):
        (work / f"{number}.bin").write_bytes(os.urandom(1_000_000))
    names = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "-A"),
        ("commit", "-q", "-m", "all"),
        ("push", "-q", str(bare), "main"),
    ):
        subprocess.run(["git", *names, *words], cwd=work, check=True)
    subprocess.run(["git", "-C", bare, "repack", "-adq"], check=True)


def clone_here(url: str, authority: Authority, place: Path) -> float:
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_SSL_CAINFO": str(authority.ca_file),
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(place.parent),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}",
    }
    began = time.perf_counter()
    subprocess.run(["git", "clone", "-q", "--bare", url, place], check=True, env=environment)
    took = time.perf_counter() - began
    shutil.rmtree(place)
    return took


async def clone_inside(computer: Computer, keyring: Keyring, url: str) -> float:
    began = time.perf_counter()
    done = await computer.run(f"git clone -q --bare {url} here", env=keyring.grant("bench")[0], timeout=120)
    took = time.perf_counter() - began
    done.check()
    (await computer.run("rm -rf here")).check()
    return took


async def compare(rounds: int) -> list[Figure]:
    direct: list[float] = []
    relayed: list[float] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("repositories", "workspace", "home"):
            (folder / part).mkdir()
        authority = make_authority(folder, HOST, "127.0.0.1")
        with run_tls_git_server(GitServer(0, folder / "repositories"), authority.server) as server:
            await asyncio.to_thread(fill, server, folder)
            vault = Vault(folder / "vault")
            vault.set("git", PASSWORD)
            keyring = Keyring(vault, folder / "vault", folder / "agents", trust=authority.client)
            await keyring.set_credentials(
                [
                    HostCredential(
                        "code", parse_host(HOST), "git", server.port, "basic", user=USER, tools=frozenset({"git"})
                    )
                ]
            )
            names = FakeResolver()
            names.set(HOST, ["127.0.0.1"])
            with Timeline(folder / "timeline.db") as timeline:
                async with (
                    EgressService(
                        timeline, EgressSettings("deny"), resolve=names, check=pretend_public, keyring=keyring
                    ) as egress,
                    Computer.start(folder / "workspace", folder / "home") as computer,
                ):
                    await computer.listen(EGRESS_PORT, egress.handle)
                    here = f"https://127.0.0.1:{server.port}/large.git"
                    there = f"https://{HOST}:{server.port}/large.git"
                    for number in range(rounds + 1):
                        plain = await asyncio.to_thread(clone_here, here, authority, folder / "clone")
                        ours = await clone_inside(computer, keyring, there)
                        if number:  # the first of each fills caches
                            direct.append(plain)
                            relayed.append(ours)
    ratio = statistics.median(relayed) / statistics.median(direct)
    load = f"load {os.getloadavg()[0]:.1f}"
    return [
        Figure(f"a clone of {MEGABYTES} MB on the host", statistics.median(direct) * 1000, "ms", load),
        Figure(f"a clone of {MEGABYTES} MB by the relay", statistics.median(relayed) * 1000, "ms", load),
        Figure(
            "the relay, compared with the host",
            ratio,
            "×",
            "on the host",
            1.0,
            f"≤ {MAX_RATIO:g} ×",
            ratio <= MAX_RATIO,
        ),
    ]


def measure(quick: bool) -> list[Figure]:
    return asyncio.run(compare(3 if quick else 9))


if __name__ == "__main__":
    main("What does a credential cost a clone?", measure)
