"""Push and pull with credentials that are never inside the computer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.git.git_server import PASSWORD, USER, GitServer, run_git_server
from tests.git.test_repository import COMMIT, git, make_repository, run_inside, state
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.computer import Computer
from freehold.git.ref_update import RefUpdate
from freehold.git.relay import open_relay
from freehold.git.remote_address import parse_remote
from freehold.observe.secrets import Secret

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with run_git_server(tmp_path_factory.mktemp("git")) as server:
        yield server


async def connect(freehold: RunningFreehold, server: GitServer, name: str, password: str = PASSWORD) -> Path:
    """A repository with a remote, and the credentials of its host in the vault."""
    server.create(name)
    folder = await make_repository(freehold, name, "a.txt")
    await run_inside(freehold, f"cd {name} && git remote add origin {server.url(name)}")
    await freehold.call("PUT", f"/v1/secrets/git-127.0.0.1-{server.port}", value=f"{USER}:{password}")
    return folder


async def push(freehold: RunningFreehold, server: GitServer, name: str, **other: str) -> tuple[int, str]:
    commit = (await state(freehold, name))["commit"]
    body = {"folder": name, "remote": "origin", "url": server.url(name), "branch": "main", "commit": commit, **other}
    answer = await freehold.http.post("/v1/git/push", json=body)
    return answer.status_code, answer.text


async def test_a_branch_is_pushed_and_pulled(freehold: RunningFreehold, server: GitServer) -> None:
    folder = await connect(freehold, server, "shared")
    (remote,) = (await state(freehold, "shared"))["remotes"]
    assert (remote["url"], remote["has_credentials"]) == (server.url("shared"), True)
    status, text = await push(freehold, server, "shared")
    assert status == 200, text
    found = await state(freehold, "shared")
    assert server.read("shared", "rev-parse", "main") == found["commit"]
    assert (found["upstream"], found["ahead"], found["behind"]) == ("origin/main", 0, 0)

    await run_inside(
        freehold, f"git clone -q shared elsewhere && cd elsewhere && echo two > b.txt && git add -A && {COMMIT} second"
    )
    await bring(freehold, server)
    body = {"folder": "shared", "remote": "origin", "url": server.url("shared"), "branch": "main"}
    done = await freehold.call("POST", "/v1/git/pull", **body)
    assert done["commit"] == server.read("shared", "rev-parse", "main")
    assert (folder / "b.txt").read_text() == "two\n"

    await run_inside(freehold, f"cd elsewhere && {COMMIT} third && cd ../shared && {COMMIT} mine")
    await bring(freehold, server)
    answer = await freehold.http.post("/v1/git/pull", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "git.not-done")
    found = await state(freehold, "shared")
    assert (found["ahead"], found["behind"]) == (1, 1)
    status, text = await push(freehold, server, "shared")
    assert status == 409, text


async def bring(freehold: RunningFreehold, server: GitServer) -> None:
    """Somebody else pushes what is in `elsewhere`."""
    await run_inside(freehold, "cd elsewhere && git bundle create -q ../bundle main")
    git(server.root / "shared.git", "fetch", "-q", str(freehold.file("bundle")), "main:main")


async def test_the_password_is_nowhere_inside(freehold: RunningFreehold, server: GitServer) -> None:
    """A hook and a helper of the repository look for it while a push runs."""
    folder = await connect(freehold, server, "curious")
    look = "env > /workspace/seen.txt; cat /proc/*/environ /proc/*/cmdline >> /workspace/seen.txt 2>/dev/null; true"
    await run_inside(
        freehold,
        f"cd curious && git config core.fsmonitor {look!r} && git config credential.helper {('!' + look)!r} && "
        f"git config core.askpass {look!r} && git config http.proxy http://127.0.0.1:9 && "
        f"printf '#!/bin/sh\\n{look}\\n' > .git/hooks/pre-push && chmod +x .git/hooks/pre-push && "
        f"printf '#!/bin/sh\\n{look}\\n' > .git/hooks/reference-transaction && chmod +x .git/hooks/reference-transaction",
    )
    status, text = await push(freehold, server, "curious")
    assert status == 200, text
    await run_inside(freehold, look)
    inside = [path.read_bytes() for path in freehold.home.workspace.rglob("*") if path.is_file()]
    assert len(inside) > 3
    assert not any(PASSWORD.encode() in data for data in inside)
    assert (folder / ".git").exists()


async def test_an_address_that_an_agent_changed_is_not_used(freehold: RunningFreehold, server: GitServer) -> None:
    await connect(freehold, server, "moved")
    await run_inside(freehold, f"cd moved && git remote set-url origin {server.url('evil')}")
    status, text = await push(freehold, server, "moved")
    assert status == 409
    assert "git.changed" in text


async def test_credentials_that_the_host_refuses_are_named(freehold: RunningFreehold, server: GitServer) -> None:
    await connect(freehold, server, "wrong", password="no-longer-valid")
    status, text = await push(freehold, server, "wrong")
    assert status == 409
    assert f"git-127.0.0.1-{server.port}" in text
    assert "no-longer-valid" not in text


async def test_without_credentials_the_rules_of_the_network_apply(freehold: RunningFreehold, server: GitServer) -> None:
    await connect(freehold, server, "plain")
    await freehold.call("DELETE", f"/v1/secrets/git-127.0.0.1-{server.port}")
    count = len(server.seen)
    status, _ = await push(freehold, server, "plain")
    assert status == 409
    assert len(server.seen) == count, "nothing from inside reaches the loopback of the host"


async def test_whoever_finds_the_open_relay_can_only_do_what_the_owner_asked_for(
    freehold: RunningFreehold, server: GitServer
) -> None:
    await connect(freehold, server, "raced")
    server.create("other")
    commit = (await state(freehold, "raced"))["commit"]
    await run_inside(freehold, f"cd raced && {COMMIT} evil")
    address, update = parse_remote(server.url("raced")), RefUpdate(commit, "main")
    assert address is not None
    async with (
        Computer.connect(freehold.home.computer_socket()) as computer,
        open_relay(computer, address, "git-receive-pack", Secret(f"{USER}:{PASSWORD}"), update) as relay,
    ):

        async def attempt(command: str) -> bool:
            return (await computer.run(f"cd raced && {command}", cwd="/workspace", env={"no_proxy": "*"})).ok

        for other in (
            "HEAD:refs/heads/main",
            "HEAD:refs/heads/evil",
            f"{commit}:refs/heads/evil",
            f"{commit}:refs/tags/main",
        ):
            assert not await attempt(f"git push {relay.address} {other}")
        assert not await attempt(f"git push {relay.address} {commit}:refs/heads/main HEAD:refs/heads/evil")
        assert not await attempt(f"git push {relay.address} :refs/heads/main")
        assert not await attempt(f"git ls-remote {relay.address}"), "this relay is for a push"
        assert not await attempt(f"git push {relay.address.replace('raced', 'other')} {commit}:refs/heads/main")
        guess = relay.address.replace(relay.address.split("/")[3], "guess")
        assert not await attempt(f"git push {guess} {commit}:refs/heads/main")
        assert server.read("raced", "for-each-ref") == server.read("other", "for-each-ref") == ""
        assert await attempt(f"git push {relay.address} {commit}:refs/heads/main")
    assert server.read("raced", "for-each-ref", "--format=%(objectname) %(refname)") == f"{commit} refs/heads/main"
    assert relay.problem is not None
    assert relay.problem.code == "git.refused"
