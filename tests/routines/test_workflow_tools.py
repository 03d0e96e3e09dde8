"""The host tools: an agent runs a workflow, or adds a routine with one, only with the text that the owner has read."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_asyncio
from tests.routines.test_tools import Owner

from freehold.agents.tools.tool import HostTool
from freehold.errors import FreeholdError
from freehold.gateway.services import Services
from freehold.manifest import load_manifest
from freehold.routines.clock import WallClock
from freehold.routines.routine_store import RoutineStore
from freehold.routines.tools import make_routine_tools
from freehold.routines.workflows.journal import TimelineJournal
from freehold.routines.workflows.records import digest_source
from freehold.routines.workflows.store import WorkflowStore
from freehold.routines.workflows.tools import make_workflow_tools
from freehold.timeline import Timeline

SOURCE = "async def main(data):\n    return 'what the owner reads'\n"


class Files:
    """The files of a computer."""

    async def read_text(self, path: str, *, limit: int) -> str:
        assert path == "/workspace/w.py"
        if len(SOURCE) > limit:
            raise FreeholdError("files.too-large", "too large")
        return SOURCE


@pytest_asyncio.fixture
async def tools(tmp_path: Path) -> AsyncIterator[tuple[dict[str, HostTool], Timeline]]:
    (tmp_path / "freehold.toml").write_text("[workflows]\nbudget = 2.0\n")
    manifest = load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path).manifest
    with Timeline(tmp_path / "timeline.db") as timeline:
        vault = SimpleNamespace(get=None)
        computer = SimpleNamespace(files=Files())
        given: Any = SimpleNamespace(timeline=timeline, computer=computer, manifest=manifest, vault=vault)
        services = cast("Services", given)
        made = [*make_workflow_tools(services), *make_routine_tools(services)]
        yield {tool.name: tool for tool in made}, timeline


async def test_the_owner_reads_the_file_and_only_that_text_may_run(
    tools: tuple[dict[str, HostTool], Timeline],
) -> None:
    owner, tool = Owner("once"), tools[0]["workflows_run"]
    assert "w.py  due" in str(await tool.call(owner.caller(), tool.check({"file": "w.py"})))
    (request,) = owner.shown
    assert "what the owner reads" in str(request.as_json())
    assert request.hidden_bytes == 0
    store = WorkflowStore(TimelineJournal(tools[1]), WallClock())
    (workflow,) = store.list_workflows()
    assert (workflow.digest, workflow.who, workflow.budget) == (digest_source(SOURCE), "session:abc", 2.0)
    assert store.claim(workflow.id, SOURCE + "# changed", "here") is None
    assert store.get(workflow.id).state == "changed"
    # Also when the owner lets it go on: what was approved stays the only text.
    store.retry(workflow.id, who="owner")
    assert store.claim(workflow.id, SOURCE + "# changed", "here") is None
    assert "w.py  changed" in str(await tools[0]["workflows_list"].call(owner.caller(), {}))


async def test_without_a_yes_no_workflow_is_stored(tools: tuple[dict[str, HostTool], Timeline]) -> None:
    tool = tools[0]["workflows_run"]
    with pytest.raises(FreeholdError, match="The user said no"):
        await tool.call(Owner("reject").caller(), tool.check({"file": "w.py"}))
    with pytest.raises(FreeholdError, match="is not a Python file of the workspace"):
        await tool.call(Owner("once").caller(), tool.check({"file": "../../etc/x.py"}))
    assert WorkflowStore(TimelineJournal(tools[1]), WallClock()).list_workflows() == []


async def test_a_routine_with_a_workflow_is_bound_to_the_text_that_was_shown(
    tools: tuple[dict[str, HostTool], Timeline],
) -> None:
    owner, tool = Owner("once"), tools[0]["routines_add"]
    routine = 'cron = "0 3 * * *"\nworkflow = "w.py"\n'
    await tool.call(owner.caller(), tool.check({"name": "nightly", "routine": routine}))
    assert "what the owner reads" in str(owner.shown[0].as_json())
    spec = RoutineStore(tools[1], WallClock()).get("nightly").spec
    assert (spec.workflow, spec.sha256) == ("w.py", digest_source(SOURCE))
