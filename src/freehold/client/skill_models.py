"""The replies of `/v1/skills` as frozen objects."""

from datetime import datetime

from freehold.client.models import ApiModel


class SkillOrigin(ApiModel):
    kind: str
    place: str
    part: str
    commit: str | None


class SkillUsage(ApiModel):
    """`count` is the number of turns in which it was loaded."""

    count: int
    last: str | None
    agents: dict[str, int]


class SkillInfo(ApiModel):
    """One skill that the owner has added. `digest` is the hash of all its files."""

    name: str
    description: str
    digest: str
    size: int
    files: int
    source: SkillOrigin
    added: datetime
    on: bool
    use: SkillUsage


class SkillListing(ApiModel):
    enabled: bool
    skills: tuple[SkillInfo, ...]


class SkillFileInfo(ApiModel):
    path: str
    size: int
    executable: bool


class SkillScriptInfo(ApiModel):
    path: str
    runs: str
    size: int


class SkillFindingInfo(ApiModel):
    level: str
    path: str
    line: int | None
    words: str


class SkillContent(ApiModel):
    """What one version of a skill has in it."""

    name: str
    description: str
    digest: str
    size: int
    license: str | None
    compatibility: str | None
    allowed_tools: str | None
    metadata: dict[str, str]
    instructions: str
    files: tuple[SkillFileInfo, ...]
    scripts: tuple[SkillScriptInfo, ...]
    findings: tuple[SkillFindingInfo, ...]


class SkillWithContent(ApiModel):
    skill: SkillInfo
    content: SkillContent


class SkillFileChange(ApiModel):
    path: str
    word: str
    diff: str | None


class LookedSkill(ApiModel):
    """A skill of a source. `in_use`: the hash of the version of the same name that is in use."""

    content: SkillContent
    source: SkillOrigin
    in_use: str | None
    changes: tuple[SkillFileChange, ...]


class LookedSource(ApiModel):
    skills: tuple[LookedSkill, ...]
    refused: dict[str, str]


class SkillNames(ApiModel):
    names: tuple[str, ...]


class SkillText(ApiModel):
    path: str
    text: str | None
