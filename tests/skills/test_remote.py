"""Skills of a repository elsewhere come through egress, at a commit that the lock names."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.egress.proxy_harness import FakeResolver, run_proxy
from tests.skills.git_server import serve_git
from tests.skills.skill_folders import commit_all, write_skill

from freehold.errors import FreeholdError
from freehold.skills.remote import read_remote


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write_skill(tmp_path / "repositories" / "skills" / "charts").parent


@pytest.fixture
def names() -> FakeResolver:
    names = FakeResolver()
    names.set("git.example", ["127.0.0.1"])
    return names


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with serve_git(tmp_path / "repositories") as port:
        yield port


async def test_a_pinned_commit_is_fetched_through_egress_and_only_for_this(
    tmp_path: Path, repository: Path, port: int, names: FakeResolver
) -> None:
    first = commit_all(repository)
    (repository / "charts" / "new.md").write_text("later")
    commit_all(repository)
    async with run_proxy(tmp_path, names=names) as proxy:
        url = f"http://git.example:{port}/skills/.git"
        (found,) = await read_remote(proxy.egress, url, first, who="owner")
        assert (found.source.kind, found.source.place, found.source.commit) == ("remote", url, first)
        assert (found.source.part, list(found.package.files)) == ("charts", ["SKILL.md"])
        assert (await proxy.event("connection_allowed"))["target"] == f"git.example:{port}"
        assert proxy.egress.status().rules == ()
        assert proxy.egress.credentials.sessions == frozenset()


async def test_a_host_that_a_rule_denies_is_not_asked(
    tmp_path: Path, repository: Path, port: int, names: FakeResolver
) -> None:
    commit = commit_all(repository)
    async with run_proxy(tmp_path, mode="allow", deny=["git.example"], names=names) as proxy:
        with pytest.raises(FreeholdError, match="cannot be fetched") as caught:
            await read_remote(proxy.egress, f"http://git.example:{port}/skills/.git", commit, who="owner")
    assert caught.value.code == "skill.not-fetched"
    assert names.asked == []


@pytest.mark.parametrize(
    ("url", "commit", "words"),
    [
        ("http://git.example/skills", "main", "changed on the way"),
        ("https://owner:secret@git.example/skills", None, "no user name"),
        ("https://git.example/skills", "--upload-pack=sh", "not the name of a commit"),
        ("https://", None, "not the address"),
        ("https://git.example:x/", None, "not the address"),
        ("ext::sh -c id", None, "not the address"),
    ],
)
async def test_an_address_that_could_do_more_is_refused(
    tmp_path: Path, url: str, commit: str | None, words: str
) -> None:
    async with run_proxy(tmp_path) as proxy:
        with pytest.raises(FreeholdError, match=words):
            await read_remote(proxy.egress, url, commit, who="owner")
