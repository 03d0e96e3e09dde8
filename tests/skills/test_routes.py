"""`/v1/skills`: what is added was shown before, and is what was shown."""

import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.skills.skill_folders import skill_text, write_skill, write_tar, write_zip

from freehold.client import Freehold
from freehold.errors import FreeholdError
from freehold.skills.library import SkillLibrary
from freehold.skills.proposals import PROPOSALS


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path) as running:
        yield running


def client(gateway: RunningGateway, *scopes: str) -> Freehold:
    secret = gateway.token(*(scopes or ("read", "admin")))["authorization"].removeprefix("Bearer ")  # type: ignore[arg-type]
    return Freehold(gateway.url, token=secret)


async def test_shipped_skills_are_looked_at_added_read_switched_and_removed(gateway: RunningGateway) -> None:
    async with client(gateway) as home:
        assert (await home.skills.list()).skills == ()
        looked = {one.content.name: one for one in (await home.skills.look("shipped")).skills}
        assert len(looked) >= 19
        assert looked["pdf"].in_use is None
        assert {one.path for one in looked["pdf"].content.scripts} == {"scripts/make_pdf.py", "scripts/read_pdf.py"}
        assert await home.skills.add([looked["pdf"].content.digest]) == ("pdf",)
        (listed,) = (await home.skills.list()).skills
        assert (listed.name, listed.on, listed.use.count, listed.source.kind) == ("pdf", True, 0, "shipped")
        found = await home.skills.get("pdf")
        assert found.content.digest == found.skill.digest
        assert "scripts/make_pdf.py" in found.content.instructions
        assert "import" in str((await home.skills.read("pdf", "scripts/make_pdf.py")).text)
        assert (await home.skills.look_for_update("pdf")).skills == ()
        assert not (await home.skills.switch("pdf", on=False)).on
        await home.skills.remove("pdf")
        assert (await home.skills.list()).skills == ()
    kinds = [event.kind for event in gateway.services.timeline.read(kinds=("skill.*",))]
    assert kinds == ["skill.added", "skill.switched", "skill.removed"]


async def test_a_proposal_that_changes_after_it_was_shown_is_adopted_as_shown(gateway: RunningGateway) -> None:
    folder = write_skill(gateway.services.home.workspace / PROPOSALS / "charts")
    async with client(gateway) as home:
        (looked,) = (await home.skills.look("proposals")).skills
        (folder / "SKILL.md").write_text(skill_text(description="Evil."))
        await home.skills.add([looked.content.digest])
        assert (await home.skills.get("charts")).content.description == "Makes charts."
        (update,) = (await home.skills.look_for_update("charts")).skills
        assert update.in_use == looked.content.digest
        (change,) = update.changes
        assert "+description: Evil." in str(change.diff)
        await home.skills.add([update.content.digest])
        assert (await home.skills.get("charts")).content.description == "Evil."


async def test_nothing_is_added_that_was_not_shown(gateway: RunningGateway) -> None:
    async with client(gateway) as home:
        with pytest.raises(FreeholdError, match="was not looked at"):
            await home.skills.add(["0" * 64])
        for source, place in (("remote", "/etc"), ("package", "/etc"), ("remote", "file:///etc")):
            with pytest.raises(FreeholdError, match="is not the place"):
                await home.skills.look(source, place)  # type: ignore[arg-type]
        for name in ("..", "%2e%2e%2fetc", "No Name"):
            with pytest.raises(FreeholdError):
                await home.skills.get(name)


async def test_an_uploaded_archive_is_looked_at_and_one_that_leads_out_is_refused(
    gateway: RunningGateway, tmp_path: Path
) -> None:
    headers = gateway.token("read", "admin")
    good = write_zip(tmp_path / "a.zip", {"charts/SKILL.md": skill_text().encode()})
    answer = await gateway.http.post("/v1/skills/look/archive", content=good.read_bytes(), headers=headers)
    (looked,) = answer.json()["skills"]
    digest = looked["content"]["digest"]
    added = await gateway.http.post("/v1/skills", json={"digests": [digest]}, headers=headers)
    assert added.json() == {"names": ["charts"]}
    link = tarfile.TarInfo()
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    bad = [
        write_zip(tmp_path / "b.zip", {"x/SKILL.md": skill_text("x").encode(), "x/../../evil": b""}),
        write_tar(tmp_path / "c.tgz", {"x/SKILL.md": skill_text("x").encode(), "x/passwd": link}),
    ]
    for path in bad:
        answer = await gateway.http.post("/v1/skills/look/archive", content=path.read_bytes(), headers=headers)
        assert answer.status_code == 403, answer.text
    both = {"a/SKILL.md": skill_text("a").encode(), "b/SKILL.md": b"---\nname: b\nversion: 1.0\n---\n"}
    mixed = write_zip(tmp_path / "d.zip", both).read_bytes()
    answer = await gateway.http.post("/v1/skills/look/archive", content=mixed, headers=headers)
    assert [one["content"]["name"] for one in answer.json()["skills"]] == ["a"]
    assert "version" in answer.json()["refused"]["b"]
    large = io.BytesIO()
    with tarfile.open(fileobj=large, mode="w:gz") as tar:
        head = tarfile.TarInfo("x/SKILL.md")
        head.size = 1024
        tar.addfile(head, io.BytesIO(b"x" * 1024))
        huge = tarfile.TarInfo("x/huge")
        huge.size = 17 * 1024 * 1024
        tar.addfile(huge, io.BytesIO(bytes(huge.size)))
    answer = await gateway.http.post("/v1/skills/look/archive", content=large.getvalue(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "skill.too-big")


async def test_a_token_that_may_only_read_changes_nothing(gateway: RunningGateway) -> None:
    library = SkillLibrary(gateway.services.home)
    library.add([one for one in library.read("shipped") if one.package.name == "pdf"])
    async with client(gateway, "read") as home:
        assert [one.name for one in (await home.skills.list()).skills] == ["pdf"]
        for act in (home.skills.remove("pdf"), home.skills.switch("pdf", on=False), home.skills.look("shipped")):
            with pytest.raises(FreeholdError) as caught:
                await act
            assert caught.value.kind.status == 403
