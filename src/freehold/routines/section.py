"""`[routines.<name>]`: one routine. The API, the command line and the host tool describe a routine in the same way."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, Strict

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Seconds

MAX_PROMPT = 32 * 1024
MAX_COMMAND = 8 * 1024
MAX_PATTERNS = 20
MAX_PATTERN = 500

FilePatterns = Annotated[tuple[Annotated[str, Field(max_length=MAX_PATTERN)], ...], Strict(False)]
Overlap = Literal["skip", "queue", "replace"]
Missed = Literal["skip", "one", "all"]
UnattendedAsks = Literal["park", "refuse"]


class RoutineSection(Section):
    """A trigger, a piece of work, and bounds. Exactly one trigger and one piece of work are set."""

    enabled: bool = Field(default=True, description="Whether it may begin by itself.")

    cron: str | None = Field(
        default=None,
        max_length=200,
        description="Trigger: times as cron writes them: minute, hour, day, month, weekday.",
        examples=["0 7 * * MON-FRI"],
    )
    every: Seconds | None = Field(
        default=None, ge=10, le=366 * 86400, description="Trigger: again and again after this time.", examples=["30m"]
    )
    at: str | None = Field(
        default=None, max_length=40, description="Trigger: once, at this time.", examples=["2027-01-01T09:00"]
    )
    files: FilePatterns = Field(
        default=(),
        max_length=MAX_PATTERNS,
        description="Trigger: a file of the workspace that matches one of these patterns has changed.",
        examples=[["inbox/**/*.pdf"]],
    )
    webhook: bool = Field(
        default=False, description="Trigger: a signed request to /v1/hooks/NAME, as Standard Webhooks describes it."
    )
    event: str | None = Field(
        default=None,
        max_length=200,
        description="Trigger: an event of the events slot with this type; a * at the end stands for the rest.",
        examples=["org.example.order.*"],
    )
    after: str | None = Field(
        default=None,
        max_length=200,
        description="Trigger: the end of a run of another routine (`routine:NAME`), or of a turn of a session (`session:ID`, or `session` for any that no routine has begun).",
        examples=["routine:fetch"],
    )
    message: str | None = Field(
        default=None,
        max_length=100,
        description="Trigger: a message of the owner on this channel; * for any channel.",
        examples=["matrix"],
    )
    zone: str | None = Field(
        default=None,
        max_length=64,
        description="The time zone of cron, at and hours; by default that of this machine.",
        examples=["Europe/Berlin"],
    )

    prompt: str | None = Field(
        default=None,
        max_length=MAX_PROMPT,
        description="Work: a prompt to an agent. `{{ name }}` stands for what the trigger tells, always as quoted data.",
        examples=["Summarise what changed in the repository since yesterday."],
    )
    command: str | None = Field(
        default=None,
        max_length=MAX_COMMAND,
        description="Work: a shell command in the computer. What the trigger tells is on its standard input, as JSON.",
        examples=["make -C site nightly"],
    )
    checklist: str | None = Field(
        default=None,
        max_length=1000,
        description="Work: a file of the workspace with what to look after. The agent stays quiet when there is nothing to report, and is not even started while the file is empty.",
        examples=["HEARTBEAT.md"],
    )
    workflow: str | None = Field(
        default=None,
        max_length=1000,
        description="Work: a workflow, a Python file of the workspace. Its main gets what the trigger tells.",
        examples=["flows/nightly.py"],
    )
    sha256: str | None = Field(
        default=None,
        max_length=64,
        pattern="^[0-9a-f]{64}$",
        description="The workflow runs only while its file has this SHA-256. A routine that an agent proposed always has it.",
        examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    )
    agent: str | None = Field(
        default=None, max_length=100, description="The agent; by default agents.default.", examples=["claude"]
    )
    model: str | None = Field(
        default=None, max_length=200, description="The model; by default that of the agent.", examples=["local"]
    )
    session: str = Field(
        default="new",
        max_length=64,
        description="`new`: each run has a session of its own. `same`: all runs go on with one. Or the id of a session.",
    )

    budget: float | None = Field(
        default=None,
        gt=0,
        lt=1_000_000,
        description="US dollars that one run may cost, with its retries. It is ended at it.",
        examples=[0.5],
    )
    budget_day: float | None = Field(
        default=None, gt=0, lt=1_000_000, description="US dollars that all runs of a day may cost.", examples=[2.0]
    )
    longest: Seconds = Field(
        default=3600,
        ge=1,
        le=7 * 86400,
        description="How long a run may work. Then it is ended. The steps of a workflow have their own.",
    )
    hours: str | None = Field(
        default=None,
        max_length=11,
        description="The part of the day in which it may begin.",
        examples=["08:00-22:00"],
    )
    overlap: Overlap = Field(
        default="skip",
        description="What happens when the run before has not ended or waits for you: `skip` the new one, `queue` it, or `replace` the old one.",
    )
    missed: Missed = Field(
        default="one", description="Which of the times that passed while everything was off are made up for."
    )
    missed_most: int = Field(default=10, ge=1, le=100, description='How many at most, with missed = "all".')
    most_per_hour: int = Field(
        default=60,
        ge=1,
        le=3600,
        description="How many runs may be triggered in an hour, from outside or by hand. Times of its own do not count.",
    )
    retries: int = Field(default=0, ge=0, le=10, description="How often a run that failed is tried again.")
    retry_delay: Seconds = Field(
        default=60, ge=1, le=86400, description="How long the first retry waits. Each further one waits twice as long."
    )
    pause_after: int = Field(default=5, ge=1, le=100, description="Failures in a row after which it is paused.")
    asks: UnattendedAsks = Field(
        default="park",
        description="What happens when the agent asks for a permission: `park` lets the run wait for you, `refuse` answers no. Your rules for permissions count as always.",
    )


NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"
RoutineName = Annotated[str, Field(pattern=NAME_PATTERN, max_length=63)]


class RoutinesSection(Section):
    """Work that begins without you, by name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, RoutineSection] = Field(init=False)
    named_tables: ClassVar[type[Section]] = RoutineSection
    named_example: ClassVar[str] = "morning"

    @property
    def named(self) -> Mapping[str, RoutineSection]:
        """The routines of the manifest, by name."""
        return self.__pydantic_extra__
