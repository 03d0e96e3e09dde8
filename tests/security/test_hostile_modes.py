"""An agent that is not known to ask does not work, whatever it says about itself and whenever it changes its mind."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.security.hostile_session import HostileHarness, HostileSession, run_hostile_harness

from freehold.agents.acp.options import AgentOptions
from freehold.agents.catalogue.registry import is_known_to_ask, known_agents, mode_policy
from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.manifest import load_manifest
from freehold.manifest.agent_modes import is_asking_mode, is_asking_value

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACT = {"write": {"path": "/workspace/unasked.txt", "text": "x"}}
UNASKED = (
    "auto",
    "Auto-Approve",
    "auto_edit",
    "autoEdit",
    "accept-edits",
    "acceptEdits",
    "yolo",
    "bypassPermissions",
    "dontAsk",
    "full-access",
    "never",
    "agent",
    "some-mode-of-tomorrow",
    "",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Computer, Path]]:
    workspace = tmp_path_factory.mktemp("workspace")
    async with Computer.start(workspace=workspace) as computer:
        yield computer, workspace


@pytest_asyncio.fixture(loop_scope="module")
async def hostile(place: tuple[Computer, Path], tmp_path: Path) -> AsyncIterator[HostileHarness]:
    (place[1] / "unasked.txt").unlink(missing_ok=True)
    async with run_hostile_harness(*place, tmp_path / "home") as harness:
        yield harness


def modes(current: str, *others: str) -> dict[str, Any]:
    return {
        "modes": {"currentModeId": current, "availableModes": [{"id": one, "name": one} for one in (current, *others)]}
    }


def option(value: str | bool, *choices: str, name: str = "mode", category: str = "mode") -> dict[str, Any]:
    listed = [{"value": one, "name": one} for one in choices]
    return {"id": name, "name": name, "category": category, "type": "select", "currentValue": value, "options": listed}


async def is_refused(session: HostileSession, place: tuple[Computer, Path]) -> bool:
    """Sends a prompt that would make it act."""
    ended = await session.play(ACT)
    acted = (place[1] / "unasked.txt").exists()
    return ended.get("error", {}).get("code") == "agent.unasked" and not acted


def recorded(session: HostileSession) -> list[tuple[Any, Any]]:
    """Mode and `asks` of every `agent.mode` in the timeline."""
    events = session.harness.timeline.tail(1000)
    return [
        (event.data["mode"], event.data["asks"])
        for event in events
        if event.kind == "agent.mode" and event.data["session"] == session.id
    ]


@pytest.mark.parametrize("mode", UNASKED)
async def test_an_agent_without_an_asking_mode_does_not_get_the_prompt(
    hostile: HostileHarness, place: tuple[Computer, Path], mode: str
) -> None:
    session = await hostile.open(new=modes(mode))
    assert await is_refused(session, place)
    row = await session.harness.sessions.get(session.id)
    assert (row.asks, row.mode) == (False, mode)
    assert recorded(session) == [(mode, False)]


async def test_an_agent_that_reports_no_modes_does_not_get_the_prompt(
    hostile: HostileHarness, place: tuple[Computer, Path]
) -> None:
    """pi and fast-agent never ask, and say nothing of modes."""
    assert await is_refused(await hostile.open(new={}), place)


@pytest.mark.parametrize(("current", "other"), [("auto", "default"), ("accept-edits", "default"), ("auto", "plan")])
async def test_an_agent_that_starts_unasked_is_put_into_a_mode_that_asks(
    hostile: HostileHarness, current: str, other: str
) -> None:
    """Qwen Code starts in `auto` and Mistral Vibe in `accept-edits`. Nothing is set in the manifest."""
    session = await hostile.open(new=modes(current, other, "yolo"))
    assert "error" not in await session.play({"say": "x"})
    row = await session.harness.sessions.get(session.id)
    assert (row.asks, row.mode) == (True, other)
    assert recorded(session) == [(other, True)]
    offered = (await session.harness.watchers.until(session.id, "options")).data
    assert ([one["id"] for one in offered["modes"]], offered["asks"]) == ([other], True)
    assert session.harness.sessions.dependencies.store.find_last_mode(row.agent) == (other, True)


@pytest.mark.parametrize("how", ["refuse", "auto", "yolo"])
async def test_an_agent_that_does_not_enter_the_asking_mode_is_refused(
    hostile: HostileHarness, place: tuple[Computer, Path], how: str
) -> None:
    """It refuses the change, or accepts it and reports another mode at once."""
    session = await hostile.open(new=modes("auto", "default"), set_mode=how, manifest='mode = "default"')
    assert await is_refused(session, place)


@pytest.mark.parametrize(
    "answer",
    [None, {"configOptions": [option("auto", "auto", "default")]}, {"configOptions": []}],
    ids=["nothing", "another", "none"],
)
async def test_a_mode_that_is_an_option_is_believed_only_when_the_agent_confirms_it(
    hostile: HostileHarness, place: tuple[Computer, Path], answer: Any
) -> None:
    new = {"configOptions": [option("auto", "auto", "default")]}
    assert await is_refused(await hostile.open(new=new, set_option=answer), place)


async def test_a_confirmed_option_counts(hostile: HostileHarness) -> None:
    new = {"configOptions": [option("auto", "auto", "default")]}
    session = await hostile.open(new=new, set_option={"configOptions": [option("default", "auto", "default")]})
    assert "error" not in await session.play({"say": "x"})
    assert recorded(session) == [("default", True)]


@pytest.mark.parametrize(
    "more",
    [
        option("yolo", "ask", "yolo", name="second"),
        option(True, name="auto_approve", category=""),
        option("never", "never", "on-request", name="approval_policy", category=""),
        option("accept-edits", "accept-edits", "none", name="edits", category="other"),
        option("allow-all", name="approval_policy", category=""),
        option("never", name="approval_policy", category="model"),
        option("full", name="setting", category="permissions"),
        option(False, name="require_approval", category="thought_level"),
    ],
    ids=lambda given: f"{given['id']}={given['currentValue']}",
)
async def test_every_option_counts_not_only_the_first_mode(
    hostile: HostileHarness, place: tuple[Computer, Path], more: dict[str, Any]
) -> None:
    new = {**modes("ask"), "configOptions": [option("ask", "ask"), more]}
    assert await is_refused(await hostile.open(new=new), place)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("approval_policy", value)
            for value in ("allow-all", "none", "off", "trust", "auto-run", "on-failure", "never", "always", "auto", 1)
        ),
        *(
            (name, True)
            for name in ("auto_run", "allow_all", "autoApprove", "trustWorkspace", "no_confirm", "Skip asking")
        ),
        *((name, False) for name in ("require_approval", "confirm", "sandbox", "disable-auto-approve")),
        ("Approval mode", "off"),
        ("agent-mode", "agent"),
        ("agent-mode", True),
        ("permissions", "write"),
        ("model_approval", "gpt"),
    ],
)
async def test_an_option_that_speaks_of_asking_needs_a_value_that_is_known(name: str, value: object) -> None:
    for category in ("", "model", "thought_level", "other"):
        assert not is_asking_value(name, name, category, value)
        assert not is_asking_value("x1", name, category, value)
        assert not is_asking_value(name, "Setting", category, value)


@pytest.mark.parametrize(
    ("option_id", "name", "category", "value"),
    [
        # Claude Code
        *(("model", "Model", "model", value) for value in ("default", "opus", "auto", "yolo-1")),
        *(("effort", "Effort", "thought_level", value) for value in ("default", "low", "max")),
        *(("fast", "Fast mode", "model_config", value) for value in ("on", "off", True, False)),
        *(("ultracode", "Ultracode", "model_config", value) for value in ("on", "off", True, False)),
        ("agent", "Agent", "", "default"),
        # Codex and OpenCode
        ("reasoning_effort", "Reasoning Effort", "thought_level", "high"),
        ("effort", "Effort", "thought_level", "default"),
        # Others
        *(("approval_policy", "Approval policy", "", value) for value in ("on-request", "untrusted", "ask", "default")),
        ("auto_approve", "Auto-approve", "", False),
        ("require_approval", "Require approval", "", True),
        ("no_confirm", "No confirmation", "", False),
        ("task", "Task", "", "build"),
        ("auto_compact", "Auto compact", "", True),
    ],
)
async def test_the_options_of_agents_that_ask_are_accepted(
    option_id: str, name: str, category: str, value: object
) -> None:
    assert is_asking_value(option_id, name, category, value)


@pytest.mark.parametrize(
    "last", [option("yolo", "ask", "yolo", name="last"), {"id": 7, "currentValue": "yolo"}], ids=["51st", "nameless"]
)
async def test_an_agent_with_options_that_were_not_read_is_not_known_to_ask(
    hostile: HostileHarness, place: tuple[Computer, Path], last: dict[str, Any]
) -> None:
    """The 51st is not read, nor is one without a name."""
    many = [option("x", "x", name=f"setting{number}", category="") for number in range(50)]
    assert await is_refused(await hostile.open(new={**modes("ask"), "configOptions": [*many, last]}), place)


async def test_options_that_have_nothing_to_do_with_asking_change_nothing(hostile: HostileHarness) -> None:
    harmless = [
        option("auto", "auto", "gpt", name="model", category="model"),
        option("auto", "auto", name="thought", category="thought_level"),
        option("auto", "auto", "dark", name="theme", category=""),
        option(True, name="web_search", category=""),
    ]
    session = await hostile.open(new={**modes("ask"), "configOptions": harmless})
    assert "error" not in await session.play({"say": "x"})


@pytest.mark.parametrize("mode", [*UNASKED[:-1], None, 7])
async def test_an_agent_that_leaves_its_asking_mode_is_ended(hostile: HostileHarness, mode: object) -> None:
    session = await hostile.open()
    ended = await session.play({"mode": mode}, {"hang": True})
    assert ended["error"]["code"] == "agent.unasked-mode"
    assert recorded(session)[-1][1] is False
    assert (await session.harness.sessions.get(session.id)).asks is False


async def test_an_agent_that_leaves_it_by_an_option_is_ended(hostile: HostileHarness) -> None:
    changed = {"sessionUpdate": "config_option_update", "configOptions": [option("yolo", "ask", "yolo")]}
    session = await hostile.open()
    assert (await session.play({"update": changed}, {"hang": True}))["error"]["code"] == "agent.unasked-mode"


async def test_an_agent_may_change_between_modes_that_ask(hostile: HostileHarness) -> None:
    session = await hostile.open(new=modes("ask", "plan"))
    assert "error" not in await session.play({"mode": "plan"}, {"say": "x"})
    assert recorded(session) == [("ask", True), ("plan", True)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "yolo"),
        ("mode", "accept-edits"),
        ("mode", "some-mode-of-tomorrow"),
        ("switch", True),
        ("edits", "auto-edit"),
        ("second", "yolo"),
    ],
)
async def test_a_session_option_cannot_set_what_does_not_ask(
    hostile: HostileHarness, name: str, value: str | bool
) -> None:
    more = [
        {**option(False, category=""), "id": "switch", "name": "Skip permissions"},
        option("ask-first", "ask-first", "auto-edit", name="edits", category=""),
        option("ask", "ask", "yolo", name="second"),
    ]
    new = {**modes("ask", "yolo", "accept-edits", "some-mode-of-tomorrow"), "configOptions": more}
    session = await hostile.open(new=new)
    with pytest.raises(FreeholdError) as caught:
        await session.harness.sessions.set_option(session.id, name, value)
    assert caught.value.code == "session.unasked-mode.permission"
    assert (await session.harness.sessions.get(session.id)).chosen == {}


async def test_an_option_of_an_older_version_does_not_bring_an_unasked_mode_back(hostile: HostileHarness) -> None:
    """0.1.0 let the owner choose accept-edits. The stored choice is not followed any more."""
    session = await hostile.open(new=modes("ask", "accept-edits"))
    session.harness.sessions.dependencies.store.save_agent_state(session.id, chosen={"mode": "accept-edits"})
    assert "error" not in await session.play({"say": "x"})
    assert recorded(session) == [("ask", True)]


async def test_a_session_that_is_loaded_is_put_into_its_asking_mode_again(
    hostile: HostileHarness, place: tuple[Computer, Path]
) -> None:
    """The agent says nothing of modes when it loads, and refuses to change: it does not work."""
    able = {"loadSession": True}
    session = await hostile.open(new=modes("ask"), capabilities=able, loaded=modes("yolo"))
    assert "error" not in await session.play({"say": "x"})
    await session.harness.restart()
    ended = await session.play({"say": "again"})
    # It was opened anew, in the mode that asks.
    assert "error" not in ended
    assert (await session.harness.sessions.get(session.id)).mode == "ask"


async def test_with_the_exception_an_agent_works_unasked_and_everybody_is_told(
    hostile: HostileHarness, place: tuple[Computer, Path]
) -> None:
    session = await hostile.open(new=modes("ask", "yolo"), manifest='mode = "yolo"', exception=True)
    assert "error" not in await session.play(ACT)
    row = await session.harness.sessions.get(session.id)
    assert (row.asks, row.mode) == (False, "yolo")
    assert row.as_json()["asks"] is False
    assert recorded(session) == [("yolo", False)]
    assert (await session.harness.watchers.until(session.id, "options")).data["asks"] is False
    assert session.harness.sessions.dependencies.store.find_last_mode(row.agent) == ("yolo", False)


async def test_the_exception_does_not_choose_a_mode_that_does_not_ask(hostile: HostileHarness) -> None:
    session = await hostile.open(new=modes("yolo", "ask"), exception=True)
    assert "error" not in await session.play({"say": "x"})
    assert recorded(session) == [("ask", True)]


async def test_without_the_exception_the_manifests_own_unasked_mode_is_not_entered(
    hostile: HostileHarness, place: tuple[Computer, Path]
) -> None:
    assert await is_refused(await hostile.open(new=modes("yolo"), manifest='mode = "yolo"'), place)


@pytest.mark.parametrize("mode", [*UNASKED[:-1], "Default "])
async def test_the_manifest_check_finds_a_mode_that_is_not_known_to_ask(tmp_path: Path, mode: str) -> None:
    text = f'[agents.mine]\ncommand = "x"\nmode = "{mode}"\n'
    (tmp_path / "freehold.toml").write_text(text)
    found = load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path)
    assert ("E901" in [problem.code for problem in found.problems]) is not is_asking_mode("mine", mode)


@pytest.mark.parametrize(
    "line",
    [
        'command = "mine --yolo"',
        'command = "mine --dangerously-skip-permissions"',
        'command = "mine --approval-mode=auto-edit"',
        'command = "mine"\nenv = { GOOSE_MODE = "auto" }',
        'command = "mine"\nenv = { MINE_AUTO_APPROVE = "1" }',
    ],
)
async def test_the_manifest_check_finds_flags_and_variables_that_switch_asking_off(tmp_path: Path, line: str) -> None:
    (tmp_path / "freehold.toml").write_text(f"[agents.mine]\n{line}\n")
    found = load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path)
    assert "E901" in [problem.code for problem in found.problems]


async def test_agents_that_freehold_knows_ask_and_others_are_not_vouched_for(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text(
        '[agents.mine]\ncommand = "x"\n[agents.claude]\nmode = "acceptEdits"\n[agents.told]\ncommand = "x"\nmode = "ask"\n'
    )
    agents = known_agents(load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path).manifest)
    told = {name: is_known_to_ask(agent) for name, agent in agents.items()}
    assert told == {
        "builtin": True,
        "claude": False,
        "codex": True,
        "gemini": True,
        "opencode": True,
        "mine": None,
        "told": None,
    }


@pytest.mark.parametrize(
    "line",
    [
        'command = "pi-acp"',
        'package = "npm:opencode-ai@0.0.1"',
        """env = { OPENCODE_PERMISSION = '{"bash":"allow"}' }""",
        """files = { ".config/opencode/opencode.json" = '{"permission":"allow"}' }""",
    ],
)
async def test_another_program_or_configuration_under_a_known_name_is_not_vouched_for(
    tmp_path: Path, line: str
) -> None:
    """It would be believed to ask without any modes, and in modes of which only the known program is known to ask."""
    (tmp_path / "freehold.toml").write_text(f'[agents.opencode]\n{line}\n[agents.claude]\nmodel = "here"\n')
    manifest = load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path).manifest
    agents = known_agents(manifest)
    assert is_known_to_ask(agents["opencode"]) is None
    policy = mode_policy(manifest, agents["opencode"])
    assert not AgentOptions().asks(policy)
    assert not AgentOptions(mode="build").asks(policy)
    assert AgentOptions(mode="plan").asks(policy)
    # A section that only chooses a model changes nothing.
    assert is_known_to_ask(agents["claude"])


async def test_the_manifest_check_knows_no_modes_of_another_program_under_a_known_name(tmp_path: Path) -> None:
    granted = '[security.exceptions.unasked-agent]\nreason = "the test"\n'
    for text, expected in (
        ('[agents.opencode]\nmode = "build"\n', []),
        ('[agents.opencode]\ncommand = "x"\nmode = "build"\n', ["E901"]),
        (f'[agents.opencode]\ncommand = "x"\n{granted}', []),
        (f'[agents.opencode]\nmode = "build"\n{granted}', ["W902"]),
    ):
        (tmp_path / "freehold.toml").write_text(text)
        found = [one.code for one in load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path).problems]
        assert [code for code in found if code in ("E901", "W902")] == expected, text
