"""The bodies of `/v1/skills`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from freehold.gateway.inputs import RequestBody
from freehold.gateway.moments import to_moment
from freehold.skills.checks import SkillFinding, SkillScript
from freehold.skills.library import SkillChange
from freehold.skills.loads import SkillUse
from freehold.skills.lock import LockedSkill, SkillSource, SourceKind
from freehold.skills.package import SkillPackage

Digest = Annotated[str, Field(min_length=64, max_length=64, pattern="^[0-9a-f]{64}$")]


class SkillSourceBody(BaseModel):
    """Where a skill came from. `part` is its folder in the source; `commit` the commit of a repository."""

    kind: SourceKind
    place: str
    part: str
    commit: str | None


class SkillUseBody(BaseModel):
    """`count` is the number of turns in which it was loaded. `agents`: by the name of the agent."""

    count: int
    last: str | None
    agents: dict[str, int]


class SkillBody(BaseModel):
    """One skill that the owner has added. `digest` is the hash of all its files."""

    name: str
    description: str
    digest: str
    size: int
    files: int
    source: SkillSourceBody
    added: datetime
    on: bool
    use: SkillUseBody


class SkillListBody(BaseModel):
    """`enabled`: `[skills] enabled`; without it agents are shown none of them."""

    enabled: bool
    skills: list[SkillBody]


class SkillFileBody(BaseModel):
    path: str
    size: int
    executable: bool


class SkillScriptBody(BaseModel):
    """A file that can be run, and what would run it."""

    path: str
    runs: str
    size: int


class SkillFindingBody(BaseModel):
    """`refused`: such a skill cannot be added. `noted`: the owner decides."""

    level: Literal["refused", "noted"]
    path: str
    line: int | None
    words: str


class SkillContentBody(BaseModel):
    """What one version of a skill has in it. `allowed_tools` is its author's wish: it allows nothing."""

    name: str
    description: str
    digest: str
    size: int
    license: str | None
    compatibility: str | None
    allowed_tools: str | None
    metadata: dict[str, str]
    instructions: str
    files: list[SkillFileBody]
    scripts: list[SkillScriptBody]
    findings: list[SkillFindingBody]


class SkillDetailsBody(BaseModel):
    skill: SkillBody
    content: SkillContentBody


class SkillChangeBody(BaseModel):
    """One file that an update would change. `diff` is null for one that is not a short text."""

    path: str
    word: str
    diff: str | None


class LookedSkillBody(BaseModel):
    """A skill of a source, and how it differs from the version of the same name that is in use."""

    content: SkillContentBody
    source: SkillSourceBody
    in_use: str | None = Field(description="The hash of the version that is in use; null when there is none.")
    changes: list[SkillChangeBody]


class LookedSourceBody(BaseModel):
    """`refused`: folders that cannot be read as skills, with the reason."""

    skills: list[LookedSkillBody]
    refused: dict[str, str]


class LookAtSkillsBody(RequestBody):
    """`shipped`: those that come with Freehold. `proposals`: those that agents have written in the workspace.
    `remote`: a git repository at `place`. `package`: of npm or PyPI, `npm:name@1.2.3` or `pypi:name==1.2.3`.
    """

    source: Literal["shipped", "proposals", "remote", "package"]
    place: str = Field(default="", max_length=2000)
    commit: str | None = Field(default=None, max_length=200, description="A commit, tag or branch of a repository.")


class AddSkillsBody(RequestBody):
    """Versions that were looked at before, by their hashes. One that is in use under the same name is replaced."""

    digests: list[Digest] = Field(min_length=1, max_length=200)


class SkillNamesBody(BaseModel):
    names: list[str]


class SwitchSkillBody(RequestBody):
    on: bool = Field(description="Whether agents are shown it.")


class SkillTextBody(BaseModel):
    """`text` is null for a file that is not a text."""

    path: str
    text: str | None


def describe_source(source: SkillSource) -> SkillSourceBody:
    return SkillSourceBody(kind=source.kind, place=source.place, part=source.part, commit=source.commit)


def describe_skill(name: str, skill: LockedSkill, use: SkillUse | None) -> SkillBody:
    return SkillBody(
        name=name,
        description=skill.description,
        digest=skill.digest,
        size=skill.size,
        files=skill.files,
        source=describe_source(skill.source),
        added=to_moment(skill.added),
        on=skill.is_on,
        use=SkillUseBody(count=0, last=None, agents={})
        if use is None
        else SkillUseBody(count=use.count, last=use.last, agents=dict(use.agents)),
    )


def describe_content(
    package: SkillPackage, scripts: Sequence[SkillScript], findings: Sequence[SkillFinding]
) -> SkillContentBody:
    front = package.front_matter
    metadata: Mapping[str, str] = front.metadata
    return SkillContentBody(
        name=front.name,
        description=front.description,
        digest=package.digest,
        size=package.size,
        license=front.license,
        compatibility=front.compatibility,
        allowed_tools=front.allowed_tools,
        metadata=dict(metadata),
        instructions=package.instructions,
        files=[
            SkillFileBody(path=path, size=len(file.content), executable=file.executable)
            for path, file in package.files.items()
        ],
        scripts=[SkillScriptBody(path=one.path, runs=one.runs, size=one.size) for one in scripts],
        findings=[SkillFindingBody(level=one.level, path=one.path, line=one.line, words=one.words) for one in findings],
    )


def describe_changes(changes: Sequence[SkillChange]) -> list[SkillChangeBody]:
    return [SkillChangeBody(path=one.path, word=one.word, diff=one.diff) for one in changes]
