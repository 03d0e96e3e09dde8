"""The browser in a whole Freehold: a real agent uses it, the conversation shows its picture, and its end ends it."""

import base64
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.browser.browsers import name_computer
from freehold.keeper.calls import ListComputers
from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = """
[agents.builtin]
model = "local"

[browser]
enabled = true
profile = "kept"

[security.exceptions.browser]
reason = "agents look at what they build"

[computer.services.web]
command = "python3 -m http.server 5400 --bind 127.0.0.1"
port = 5400
"""
LOOK = 'CALL browser_open {"url": "http://localhost:5400/"}\nCALL browser_screenshot {}'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    options = FreeholdOptions(agents=("builtin",), manifest=MANIFEST)
    async with run_freehold(tmp_path_factory.mktemp("browser"), options) as running:
        running.file("index.html").write_text("<title>Mine</title><h1>Built by an agent</h1>")
        await until(running.is_connected)
        await until(lambda: running.harness.programs()["service-web"].state == "ready")
        yield running


def browsers(freehold: RunningFreehold) -> set[str]:
    found = freehold.harness.call(ListComputers()).computers
    return {one.name for one in found if one.name.startswith("browser-")}


async def test_a_real_agent_uses_it_and_its_model_and_the_conversation_get_the_picture(
    freehold: RunningFreehold,
) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, LOOK)
    read = [event["data"] for event in await freehold.events(session) if event["kind"] == "tool"]
    assert "Built by an agent" in str(read), read
    (shown,) = [event for event in await freehold.events(session) if event["kind"] == "pictures"]
    (picture,) = shown["data"]["pictures"]
    assert "http://localhost:5400/" in shown["data"]["text"]
    address = f"/v1/sessions/{session}/turns/{shown['turn']}/images/{picture['place']}"
    answer = await freehold.http.get(address)
    assert (answer.headers["content-type"], answer.content[:2]) == ("image/jpeg", b"\xff\xd8")
    assert base64.b64encode(answer.content) in freehold.model.requests[-1].body
    profile = freehold.home.kept_homes / name_computer(session)
    assert browsers(freehold) == {name_computer(session)}
    assert (profile / "profile").is_dir()
    # The browser ends with its session, and a deleted session leaves no profile.
    await freehold.call("DELETE", f"/v1/sessions/{session}")
    await until(lambda: not browsers(freehold))
    await until(lambda: not profile.exists())


async def test_the_kill_switch_ends_browsers(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, LOOK)
    assert browsers(freehold)
    await freehold.call("POST", "/v1/stop", why="test")
    await until(lambda: not browsers(freehold))
    await freehold.call("POST", "/v1/stop/lift")


async def test_the_exception_is_in_status_page_and_timeline(freehold: RunningFreehold) -> None:
    (one,) = (await freehold.call("GET", "/v1/programs"))["exceptions"]
    assert (one["name"], one["reason"], one["until"]) == ("browser", "agents look at what they build", None)
    assert "Devices: none" in one["adds"]
    said = freehold.harness.run("status").stdout
    assert "Exception browser: agents look at what they build" in said
    assert "Ports: to 127.0.0.1" in said
    with Timeline(freehold.home.timeline, readonly=True) as timeline:
        (event,) = timeline.read(kinds=("security.exception",))
        assert event.data["name"] == "browser"
        assert event.data["reason"] == "agents look at what they build"
        started = [event for event in timeline.read(kinds=("computer.started",)) if event.who.startswith("session:")]
    assert all(str(event.data["computer"]).startswith("browser-") for event in started)
