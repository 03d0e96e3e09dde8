"""What the pages of skills, tools, channels, routines and workflows show in the pictures of `tools.screenshots`."""

from typing import Any

from playwright.async_api import Page, expect
from tests.support.condition import until
from tests.support.running_freehold import RunningFreehold

SKILLS = ("data-to-chart", "slides", "code-review")
CALENDAR = '''"""An MCP server with two tools, as small as one can be."""

import json
import sys

DAY = {"type": "object", "properties": {"day": {"type": "string"}}}
TOOLS = [
    {"name": "list_events", "description": "What is planned on a day.", "inputSchema": DAY},
    {"name": "add_event", "description": "Writes an event into the calendar.", "inputSchema": DAY},
]
ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "calendar", "version": "1"}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"initialize": ABOUT, "tools/list": {"tools": TOOLS}}.get(message["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
'''
ROUTINES = {
    "morning-report": {"cron": "0 7 * * *", "command": "wc -l README.md"},
    "watch-prices": {"files": ["src/prices.ts"], "command": "echo The prices have changed"},
}
WORKFLOW = """from freehold_workflow import ask, command, step


def count(text):
    return len(text.splitlines())


async def main(data):
    readme = (await command("cat README.md")).output
    lines = await step(count, readme)
    await ask(f"README.md has {lines} lines. Publish it?", ["publish", "not yet"])
"""


async def _create(freehold: RunningFreehold, path: str, **body: object) -> Any:
    answer = await freehold.http.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def add_skills(freehold: RunningFreehold) -> None:
    looked = await freehold.call("POST", "/v1/skills/look", source="shipped")
    digests = {one["content"]["name"]: one["content"]["digest"] for one in looked["skills"]}
    await freehold.call("POST", "/v1/skills", digests=[digests[name] for name in SKILLS])


async def write_server(freehold: RunningFreehold) -> None:
    freehold.file("calendar_server.py").write_text(CALENDAR)


async def draw_tools(page: Page, freehold: RunningFreehold) -> None:
    """The first time the server is added, as an owner does it."""
    if not await freehold.call("GET", "/v1/mcp"):
        await page.get_by_label("Name", exact=True).fill("calendar")
        await page.get_by_label("Command").fill("/usr/bin/python3 /workspace/calendar_server.py")
        await page.get_by_role("button", name="Add", exact=True).click()
        await page.get_by_role("button", name="Try calendar").click()
        await page.get_by_role("button", name="Allow calendar list_events").click()
    await expect(page.get_by_text("Agents are offered 1 of 2 tools")).to_be_visible()


async def add_routines(freehold: RunningFreehold) -> None:
    """One has run twice."""
    for name, routine in ROUTINES.items():
        await _create(freehold, "/v1/routines", name=name, routine=routine)
    for count in (1, 2):
        await _create(freehold, "/v1/routines/morning-report/run")

        async def is_done(count: int = count) -> bool:
            runs = (await freehold.call("GET", "/v1/routines/morning-report/runs"))["runs"]
            return [run["state"] for run in runs] == ["done"] * count

        await until(is_done)


async def draw_workflow(page: Page, freehold: RunningFreehold) -> None:
    await page.get_by_role("link", name="publish.py").click()
    await page.get_by_text("Publish it?").first.wait_for()


async def start_workflow(freehold: RunningFreehold) -> None:
    """It waits for an answer."""
    freehold.file("publish.py").write_text(WORKFLOW)
    made = await _create(freehold, "/v1/workflows", file="publish.py")

    async def is_waiting() -> bool:
        found = await freehold.call("GET", f"/v1/workflows/{made['id']}")
        return any(step["kind"] == "ask" for step in found["steps"])

    await until(is_waiting)
