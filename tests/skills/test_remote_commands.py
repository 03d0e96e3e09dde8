"""`freehold skills` with a repository elsewhere: fetched by the Freehold that runs, shown, and used only with a yes."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.credentials.private_servers import serve_tls
from tests.egress.proxy_harness import Authority, make_authority
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.skills.git_server import make_git_handler
from tests.skills.skill_folders import commit_all, skill_text, write_skill
from tests.support.condition import until

from freehold.errors import FreeholdError
from freehold.skills.cli import command
from freehold.skills.library import SkillLibrary
from freehold.skills.lock import LockedSkill

MANIFEST = """
[egress]
mode = "deny"
allow = ["127.0.0.1:{port}"]
[security.exceptions.private-egress]
reason = "the git server of this test"
"""


@dataclass(frozen=True)
class Remote:
    """A repository elsewhere, and the home of a Freehold that runs."""

    repository: Path
    url: str
    gateway: RunningGateway

    async def invoke(self, *words: str, answer: str = "", code: int = 0) -> str:
        options = ["--home", str(self.gateway.services.home.root)]
        done = await asyncio.to_thread(CliRunner().invoke, command, [*words, *options], answer)
        assert done.exit_code == code, (done.output, done.exception)
        return done.output

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.repository), *words], check=True)

    def commit(self, path: str, text: str) -> str:
        (self.repository / path).write_text(text)
        return commit_all(self.repository)

    @property
    def used(self) -> dict[str, LockedSkill]:
        return dict(SkillLibrary(self.gateway.services.home).read_lock().skills)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    authority = make_authority(tmp_path, "127.0.0.1")
    monkeypatch.setenv("GIT_SSL_CAINFO", str(authority.ca_file))
    return authority


@pytest.fixture
def port(tmp_path: Path, authority: Authority) -> Iterator[int]:
    with serve_tls(make_git_handler(tmp_path / "repositories"), authority.server) as port:
        yield port


def has_egress(gateway: RunningGateway) -> bool:
    """It starts beside the gateway, and may be ready a moment after it."""
    try:
        return gateway.services.egress is not None
    except FreeholdError:
        return False


@pytest.fixture
async def remote(tmp_path: Path, port: int) -> AsyncIterator[Remote]:
    repository = tmp_path / "repositories" / "skills"
    write_skill(repository / "charts", files={"scripts/draw.sh": b"#!/bin/sh\necho drawn\n"})
    write_skill(repository / "maps", "maps")
    async with running_gateway(tmp_path / "home", MANIFEST.format(port=port)) as gateway:
        await until(lambda: has_egress(gateway))
        yield Remote(repository, f"https://127.0.0.1:{port}/skills/.git", gateway)


async def test_a_skill_of_a_repository_is_shown_and_added_at_its_commit_only_with_a_yes(remote: Remote) -> None:
    commit = commit_all(remote.repository)
    said = await remote.invoke("add", remote.url, "charts", answer="n\n", code=1)
    assert f"commit {commit}" in said
    assert "script scripts/draw.sh, runs with /bin/sh" in said
    assert remote.used == {}
    await remote.invoke("add", remote.url, "charts", answer="y\n")
    (skill,) = remote.used.values()
    assert (skill.source.kind, skill.source.place, skill.source.commit) == ("remote", remote.url, commit)
    kinds = [event.kind for event in remote.gateway.services.timeline.read(kinds=("skill.*",))]
    assert kinds == ["skill.added"]


async def test_one_of_several_must_be_named_and_all_of_an_older_commit_can_be_added(remote: Remote) -> None:
    first = commit_all(remote.repository)
    remote.commit("maps/SKILL.md", skill_text("maps", "Later."))
    await remote.invoke("add", remote.url, "--yes", code=1)
    await remote.invoke("add", remote.url, "nothing", "--yes", code=1)
    assert remote.used == {}
    said = await remote.invoke("add", remote.url, "--all", "--commit", first, "--yes", "--json")
    assert json.loads(said[said.index("{") :]) == {"added": ["charts", "maps"]}
    assert {one.source.commit for one in remote.used.values()} == {first}
    assert remote.used["maps"].description == "Makes charts."


async def test_an_update_of_a_repository_shows_every_difference_and_is_used_only_with_a_yes(remote: Remote) -> None:
    first = commit_all(remote.repository)
    await remote.invoke("add", remote.url, "charts", "--yes")
    assert "is the same there" in await remote.invoke("update", "charts")
    remote.commit("charts/SKILL.md", skill_text(description="Sends charts away."))
    second = remote.commit("charts/send.sh", "#!/bin/sh\ncurl example.org\n")
    said = await remote.invoke("update", "charts", answer="n\n", code=1)
    assert "-description: Makes charts." in said
    assert "+description: Sends charts away." in said
    assert "+curl example.org" in said
    assert f"commit {second}" in said
    assert remote.used["charts"].source.commit == first
    assert "Updated charts" in await remote.invoke("update", "charts", answer="y\n")
    assert remote.used["charts"].source.commit == second
    assert "-curl example.org" in await remote.invoke("update", "charts", "--commit", first, answer="y\n")
    assert remote.used["charts"].source.commit == first


async def test_an_update_is_used_as_it_was_shown_and_not_as_the_repository_is_by_then(remote: Remote) -> None:
    commit_all(remote.repository)
    await remote.invoke("add", remote.url, "charts", "--yes")
    shown = remote.commit("charts/SKILL.md", skill_text(description="As it was shown."))
    async with asyncio.timeout(120):
        headers = remote.gateway.token("read", "admin")
        looked = await remote.gateway.http.post("/v1/skills/charts/look", json={}, headers=headers)
        (one,) = looked.json()["skills"]
        remote.commit("charts/SKILL.md", skill_text(description="Changed meanwhile."))
        await remote.gateway.http.post("/v1/skills", json={"digests": [one["content"]["digest"]]}, headers=headers)
    assert (remote.used["charts"].description, remote.used["charts"].source.commit) == ("As it was shown.", shown)


async def test_a_skill_that_the_repository_no_longer_has_stays_as_it_is(remote: Remote) -> None:
    commit_all(remote.repository)
    await remote.invoke("add", remote.url, "maps", "--yes")
    before = remote.used["maps"]
    (remote.repository / "maps" / "SKILL.md").unlink()
    commit_all(remote.repository)
    await remote.invoke("update", "maps", "--yes", code=1)
    assert remote.used["maps"] == before


async def test_a_branch_that_was_named_is_where_updates_come_from_and_a_broken_skill_keeps_no_other_out(
    remote: Remote,
) -> None:
    commit_all(remote.repository)
    remote.git("branch", "dev")
    await remote.invoke("add", remote.url, "charts", "--commit", "dev", "--yes")
    assert remote.used["charts"].source.ref == "dev"
    remote.commit("charts/SKILL.md", skill_text("charts", "Of the first branch."))
    remote.git("switch", "-q", "dev")
    (remote.repository / "maps" / "SKILL.md").write_text("---\nname: maps\nversion: 1.0\n---\n")
    wanted = remote.commit("charts/SKILL.md", skill_text("charts", "Of dev."))
    remote.git("switch", "-q", "-")
    await remote.invoke("update", "charts", "--yes")
    used = remote.used["charts"]
    assert (used.description, used.source.commit) == ("Of dev.", wanted)
    said = await remote.invoke("add", remote.url, "charts", "--commit", "dev", "--yes")
    assert "maps cannot be read as a skill" in said


async def test_a_repository_is_checked_before_anything_of_it_is_added(remote: Remote) -> None:
    first = commit_all(remote.repository)
    assert "maps                    ok" in await remote.invoke("check", remote.url)
    remote.commit("maps/SKILL.md", skill_text("maps", "Hides \u200b words."))
    said = await remote.invoke("check", remote.url, code=1)
    assert "refused: SKILL.md" in said
    assert "U+200B" in said
    assert json.loads(await remote.invoke("check", remote.url, "--commit", first, "--json"))[1]["findings"] == []
    assert remote.used == {}
