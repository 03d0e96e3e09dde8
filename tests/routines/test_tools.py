"""The host tools: an agent adds a routine when the owner has approved its exact text."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from freehold.agents.sessions.approval_store import PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.tools.tool import HostTool, ToolCaller
from freehold.errors import FreeholdError
from freehold.gateway.services import Services
from freehold.routines.clock import WallClock
from freehold.routines.routine_store import RoutineStore
from freehold.routines.spec_text import read_spec
from freehold.routines.tools import make_routine_tools
from freehold.timeline import Timeline

ROUTINE = 'cron = "0 7 * * MON-FRI"\nprompt = "Report what changed."\nbudget = 0.5\n'


class Owner:
    """Answers what an agent asks, and keeps what was shown."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.shown: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        self.shown.append(request)
        return PermissionAnswer(cast("Any", self.answer))

    def caller(self) -> ToolCaller:
        return ToolCaller("abc", self.ask)


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[tuple[dict[str, HostTool], RoutineStore]]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        made = make_routine_tools(cast("Services", SimpleNamespace(timeline=timeline)))
        yield {tool.name: tool for tool in made}, RoutineStore(timeline, WallClock())


async def test_the_owner_sees_the_exact_text_and_exactly_that_is_stored(
    tools: tuple[dict[str, HostTool], RoutineStore],
) -> None:
    owner = Owner("once")
    given = tools[0]["routines_add"].check({"name": "report", "routine": ROUTINE})
    assert "report" in str(await tools[0]["routines_add"].call(owner.caller(), given))
    (request,) = owner.shown
    assert ROUTINE.strip() in str(request.as_json()).replace("\\n", "\n").replace('\\"', '"')
    assert request.hidden_bytes == 0
    stored = tools[1].get("report")
    assert (stored.source, stored.spec) == ("session:abc", read_spec(ROUTINE))
    assert "report  cron  on" in str(await tools[0]["routines_list"].call(owner.caller(), {}))


async def test_without_a_yes_nothing_is_stored(tools: tuple[dict[str, HostTool], RoutineStore]) -> None:
    with pytest.raises(FreeholdError) as caught:
        await tools[0]["routines_add"].call(Owner("reject").caller(), {"name": "report", "routine": ROUTINE})
    assert caught.value.code == "tool.rejected.permission"
    assert tools[1].list_routines() == []


@pytest.mark.parametrize(
    "wrong", ["not toml", 'cron = "x"\nprompt = "y"', 'prompt = "y"', 'every = "1h"\nprompt = "y"\nroot = true']
)
async def test_a_routine_that_is_none_is_refused_before_the_owner_is_asked(
    tools: tuple[dict[str, HostTool], RoutineStore], wrong: str
) -> None:
    owner = Owner("once")
    with pytest.raises(FreeholdError):
        await tools[0]["routines_add"].call(owner.caller(), {"name": "report", "routine": wrong})
    assert owner.shown == []
