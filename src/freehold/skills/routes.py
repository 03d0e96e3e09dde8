"""`/v1/skills`. Nothing is added that the owner was not shown: a source is looked at first, and versions added by hash.

No address takes a path of the host: folders and archives there are added with the command line.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import Query, Request

from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import UrlName
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch, post
from freehold.skills.bodies import (
    AddSkillsBody,
    LookAtSkillsBody,
    LookedSkillBody,
    LookedSourceBody,
    SkillBody,
    SkillDetailsBody,
    SkillListBody,
    SkillNamesBody,
    SkillTextBody,
    SwitchSkillBody,
    describe_changes,
    describe_content,
    describe_skill,
    describe_source,
)
from freehold.skills.checks import check_package, list_scripts
from freehold.skills.library import SkillLibrary, latest_of
from freehold.skills.loads import SkillLoads
from freehold.skills.lock import SkillSource
from freehold.skills.looked import LookedSkills
from freehold.skills.name import check_skill_name
from freehold.skills.proposals import read_proposals
from freehold.skills.registry_package import is_package
from freehold.skills.remote import read_remote
from freehold.skills.section import SkillsSection
from freehold.skills.sources import SHIPPED, FoundSkill, Refused, is_remote, read_archive, reasons_of, require_some

MAX_ARCHIVE = 64 * 1024 * 1024
FilePath = Annotated[str, Query(min_length=1, max_length=300)]


class SkillRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._library = SkillLibrary(context.services.home)
        self._loads = SkillLoads(context.services.timeline, context.services.home)
        self._looked = LookedSkills()

    @get("/v1/skills", scope="read")
    async def list_skills(self) -> SkillListBody:
        """The skills that the owner has added, and how often each was loaded."""
        return await asyncio.to_thread(self._list)

    def _list(self) -> SkillListBody:
        uses = self._loads.read()
        skills = self._library.read_lock().skills
        return SkillListBody(
            enabled=self._services.manifest.section(SkillsSection).enabled,
            skills=[describe_skill(name, skill, uses.get(name)) for name, skill in skills.items()],
        )

    @post("/v1/skills/look", scope="admin")
    async def look_at_skills(self, body: LookAtSkillsBody, request: Request) -> LookedSourceBody:
        """Look at the skills of a source. Nothing is added."""
        if body.source == "proposals":
            found, refused = await asyncio.to_thread(read_proposals, self._services.home.workspace)
            return await self._show(found, refused)
        place = SHIPPED if body.source == "shipped" else body.place
        fits = {"shipped": True, "remote": is_remote(place), "package": is_package(place)}[body.source]
        if not fits:
            raise FreeholdError("skill.bad-choice", f"{place[:200]!a} is not the place of a {body.source} source")
        not_read: Refused = {}
        found = await self._read(place, body.commit, request, not_read)
        return await self._show(found, reasons_of(not_read))

    @post("/v1/skills/look/archive", scope="admin", max_body=MAX_ARCHIVE)
    async def look_at_skill_archive(self, request: Request) -> LookedSourceBody:
        """Look at the skills of a tar or zip archive, which is the body of the request. Nothing is added."""
        data = await request.body()
        refused: Refused = {}

        def read() -> list[FoundSkill]:
            with tempfile.NamedTemporaryFile(prefix="freehold-skill-") as file:
                file.write(data)
                file.flush()
                source = partial(SkillSource, "archive", "uploaded")
                return require_some(list(read_archive(Path(file.name), source, refused)), refused, "this archive")

        found = await asyncio.to_thread(read)
        return await self._show(found, reasons_of(refused))

    @post("/v1/skills/{name}/look", scope="admin")
    async def look_for_skill_update(self, name: UrlName, request: Request) -> LookedSourceBody:
        """Look at the version of a skill that its source has now. Empty when it is the one that is in use."""
        source = await asyncio.to_thread(self._library.find_source, check_skill_name(name))
        if source.kind == "archive" and source.place == "uploaded":
            raise FreeholdError("skill.not-offered", f"The skill {name} was uploaded", hint="Upload the newer archive")
        refused: Refused = {}
        found = await self._read(*latest_of(source), request, refused)
        update = await asyncio.to_thread(self._library.find_update, name, found, refused)
        return await self._show([] if update is None else [update], {})

    @post("/v1/skills", scope="admin")
    async def add_skills(self, body: AddSkillsBody, request: Request) -> SkillNamesBody:
        """Add or replace skills by the hashes of versions that were looked at."""
        found = self._looked.take(list(dict.fromkeys(body.digests)))
        names = await asyncio.to_thread(partial(self._library.add, found, replaces=True))
        for one in found:
            data = {"skill": one.package.name, "digest": one.package.digest, "from": one.source.place}
            await self._record("skill.added", data, request)
        return SkillNamesBody(names=names)

    @get("/v1/skills/{name}", scope="read")
    async def read_skill(self, name: UrlName) -> SkillDetailsBody:
        """One skill: its instructions, files and scripts, and what was found when it was checked."""
        found = await asyncio.to_thread(self._library.describe, check_skill_name(name))
        uses = await asyncio.to_thread(self._loads.read)
        return SkillDetailsBody(
            skill=describe_skill(name, found.skill, uses.get(name)),
            content=describe_content(found.package, found.scripts, found.findings),
        )

    @get("/v1/skills/{name}/file", scope="read")
    async def read_skill_file(self, name: UrlName, path: FilePath) -> SkillTextBody:
        """The text of one file of a skill."""
        found = await asyncio.to_thread(self._library.describe, check_skill_name(name))
        file = found.package.files.get(path)
        if file is None:
            raise FreeholdError("skill.no-file", f"The skill {name} has no file {path[:200]!a}")
        try:
            return SkillTextBody(path=path, text=file.content.decode())
        except UnicodeDecodeError:
            return SkillTextBody(path=path, text=None)

    @patch("/v1/skills/{name}", scope="admin")
    async def switch_skill(self, name: UrlName, body: SwitchSkillBody, request: Request) -> SkillBody:
        """Show a skill to agents, or not. Conversations that begin from now on see the change."""
        await asyncio.to_thread(partial(self._library.switch, check_skill_name(name), on=body.on))
        await self._record("skill.switched", {"skill": name, "on": body.on}, request)
        return (await self.read_skill(name)).skill

    @delete("/v1/skills/{name}", scope="admin")
    async def remove_skill(self, name: UrlName, request: Request) -> SkillNamesBody:
        """Remove a skill. Agents no longer see it."""
        await asyncio.to_thread(self._library.remove, check_skill_name(name))
        await self._record("skill.removed", {"skill": name}, request)
        return SkillNamesBody(names=[name])

    async def _read(self, place: str, commit: str | None, request: Request, refused: Refused) -> list[FoundSkill]:
        if is_remote(place):
            who = principal_of(request.scope).who
            return await read_remote(self._services.egress, place, commit, refused, who=who)
        return await asyncio.to_thread(self._library.read, place, commit, refused)

    async def _show(self, found: list[FoundSkill], refused: dict[str, str]) -> LookedSourceBody:
        self._looked.keep(found)
        shown = await asyncio.to_thread(lambda: [self._describe(one) for one in found])
        return LookedSourceBody(skills=shown, refused={name[:200]: words for name, words in refused.items()})

    def _describe(self, found: FoundSkill) -> LookedSkillBody:
        package = found.package
        before = self._library.read_lock().skills.get(package.name)
        changed = before is not None and before.digest != package.digest
        return LookedSkillBody(
            content=describe_content(package, list_scripts(package), check_package(package)),
            source=describe_source(found.source),
            in_use=None if before is None else before.digest,
            changes=describe_changes(self._library.compare(package.name, package)) if changed else [],
        )

    async def _record(self, kind: str, data: Mapping[str, str | bool], request: Request) -> None:
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, kind, data, who=who)
