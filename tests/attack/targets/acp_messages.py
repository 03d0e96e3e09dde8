"""Random ACP messages of a hostile agent: junk lines, updates and permission requests of any shape.

The owner sees every part of each request or is told that there is more; no rule lets a call pass of which one part is
not covered; an agent that leaves the modes in which it asks is ended; and nothing fails on the host.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.attack.target import RunRound
from tests.security.hostile_session import HostileHarness, HostileSession, run_hostile_harness

from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.permission_rules import PermissionRule
from freehold.agents.sessions.tool_call import KINDS
from freehold.computer import Computer

Json = dict[str, Any]
INPUTS = 20
RULES = [
    PermissionRule("allow", "edit", "/workspace/ok/*"),
    PermissionRule("allow", "move", "/workspace/ok/*"),
    PermissionRule("allow", "execute", "git status*"),
]
POISONED_PATHS = (
    "/workspace/.git/hooks/pre-commit",
    "/workspace/ok/.git/config",
    "/workspace/ok/../x",
    "/workspace/ok/.ENVRC",
    "/workspace/link/config",
    "/etc/passwd",
    "~/.bashrc",
    "x",
    "file:///workspace/x",
)
POISONED_INPUT: tuple[Json, ...] = (
    {"command": "rm -rf /workspace"},
    {"command": "git status; rm x"},
    {"command": "git status", "env": {"A": "b"}},
    {"command": "git status", "cwd": "/tmp"},
    {"command": "git status", "stdin": "x"},
    {"command": ["git", "status", "$(x)"]},
)
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    1e308,
    "",
    "\0",
    "\u202e",
    "\ud800",
    "a" * 5_000,
    [],
    {},
    [[]],
    {"": 1},
)
MODES = ("ask", "default", "yolo", "auto", "accept-edits", "", 3, None)


class LogWatch(logging.Handler):
    """Keeps what the host logged as an error of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(self.format(record))


class CallMaker:
    """Makes one permission request. With a `poison` some part of it is covered by no rule."""

    def __init__(self, random: Random, number: int) -> None:
        self._random = random
        self.marker = f"MARKER{number}X{random.randrange(10**9)}"
        self.poison = random.random() < 0.7

    def make(self) -> Json:
        random = self._random
        call: Json = {"toolCallId": f"t{random.randrange(3)}", "kind": random.choice(sorted(KINDS)), "title": "Work"}
        paths = [f"/workspace/ok/f{number}" for number in range(random.randrange(60))]
        if self.poison:
            self._poison(call, paths)
        if paths or random.random() < 0.5:
            call["content"] = [self._diff(path) for path in paths]
        if random.random() < 0.3:
            call.setdefault("locations", []).append({"path": "/workspace/ok/l"})
        params: Json = {"toolCall": call}
        self._mark(params, call)
        for _ in range(random.randrange(3)):
            place = random.choice((call, params))
            place.setdefault(random.choice(("x", "_meta", "beside", "input", "text")), random.choice(ODD))
        return params

    def _diff(self, path: str) -> Json:
        size = self._random.choice((1, 10, 3_000))
        return {"type": "diff", "path": path, "oldText": self._random.choice((None, "o" * size)), "newText": "n" * size}

    def _poison(self, call: Json, paths: list[str]) -> None:
        random = self._random
        path = random.choice(POISONED_PATHS)
        kind = random.randrange(5)
        if kind == 0:
            paths.insert(random.randrange(len(paths) + 1), path)
        elif kind == 1:
            call["locations"] = [{"path": path}]
        elif kind == 2:
            key = random.choice(("path", "file_path", "to", "destination", "target_file", "new_path"))
            call["rawInput"] = {key: path} if random.random() < 0.5 else {"edits": [{"deep": {key: path}}]}
        elif kind == 3:
            call["rawInput"] = {**random.choice(POISONED_INPUT)}
        else:
            call["rawInput"] = {"patch": f"*** Update File: {path}\n"}

    def _mark(self, params: Json, call: Json) -> None:
        """Hides the marker in one place of the request."""
        raw = call.setdefault("rawInput", {}) if isinstance(call.get("rawInput", {}), dict) else {}
        content = call.setdefault("content", [])
        text = {"type": "text", "text": self.marker}
        place = self._random.randrange(9)
        if place == 0:
            call["title"] = "t" * self._random.choice((0, 600)) + self.marker
        elif place == 1:
            raw["description"] = self.marker
        elif place == 2:
            raw.setdefault("nested", [{"x": {}}])[0]["x"]["y"] = self.marker
        elif place == 3:
            content.append({"type": "content", "content": text})
        elif place == 4:
            content.append({"type": "content", "content": {"type": "resource", "resource": text}})
        elif place == 5:
            content.append({"type": self.marker})
        elif place == 6:
            call["_meta"] = {"m": self.marker}
        elif place == 7:
            params["_meta"] = {"m": self.marker}
        else:
            content.append(self._diff(f"/workspace/ok/{self.marker}"))


def make_junk(random: Random) -> Json:
    kind = random.randrange(4)
    if kind == 0:
        update = {"sessionUpdate": random.choice(("tool_call", "tool_call_update", "plan", "x", "session_info_update"))}
        names = ("toolCallId", "title", "kind", "status", "content", "rawInput", "locations", "entries", "_meta")
        return {"update": update | {name: random.choice(ODD) for name in random.sample(names, 4)}}
    if kind == 1:
        line = json.dumps(
            {"jsonrpc": "2.0", "method": random.choice(("session/update", "x")), "params": random.choice(ODD)}
        )
        return {"raw": line[: random.randrange(len(line) + 1)] + "\n"}
    if kind == 2:
        return {"send": {"id": random.choice((1, 2, "q1", -1, None)), "result": random.choice(ODD)}}
    return {"send": {"id": "r", "method": random.choice(("fs/write_text_file", "terminal/create")), "params": {}}}


async def try_request(session: HostileSession, random: Random, number: int) -> None:
    maker = CallMaker(random, number)
    params = maker.make()
    turn = await session.prompt(*(make_junk(random) for _ in range(random.randrange(4))), {"ask": {"params": params}})
    asking = asyncio.ensure_future(session.wait_asked())
    ending = asyncio.ensure_future(session.harness.wait_ended(session.id, turn))
    try:
        await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
        await check_request(session, maker, params, asking)
        ended = (await ending).data
    finally:
        asking.cancel()
        ending.cancel()
        await asyncio.gather(asking, ending, return_exceptions=True)
    code = ended.get("error", {}).get("code", "agent.")
    assert code.startswith(("agent.", "approval.")), ended
    assert not (maker.poison and "[yes]" in session.said), f"passed unasked: {params}"


async def check_request(
    session: HostileSession, maker: CallMaker, params: Json, asking: "asyncio.Future[ApprovalRow]"
) -> None:
    """The owner is shown the marker, or told that something is not shown."""
    if asking.done():
        shown = asking.result().as_json()
        assert maker.marker in json.dumps(shown) or not shown["complete"], f"not shown: {params}"
        assert not (shown["names_nothing"] and "always" in shown["options"]), params
        await session.answer(asking.result(), "reject")
    else:
        session.forget_wait()


async def try_mode(hostile: HostileHarness, session: HostileSession, random: Random) -> None:
    mode = random.choice(MODES)
    turn = await session.prompt({"mode": mode}, {"hang": True} if mode not in ("ask", "default") else {"say": "x"})
    ended = (await session.harness.wait_ended(session.id, turn)).data
    left = mode not in ("ask", "default")
    assert (ended.get("error", {}).get("code") == "agent.unasked-mode") is left, (mode, ended)


@asynccontextmanager
async def open_target(folder: Path) -> AsyncIterator[RunRound]:
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / ".git").mkdir()
    (workspace / "link").symlink_to(".git")
    log = LogWatch()
    logging.getLogger("freehold").addHandler(log)
    try:
        async with (
            Computer.start(workspace=workspace) as computer,
            run_hostile_harness(computer, workspace, folder / "home") as hostile,
        ):
            await hostile.open()

            async def run_round(random: Random) -> int:
                session = await hostile.reopen()
                hostile.base.sessions.dependencies.approvals.rules.replace(RULES, who="owner")
                for number in range(INPUTS):
                    await try_request(session, random, number)
                    session.forget_said()
                await try_mode(hostile, session, random)
                assert not log.errors, log.errors
                assert not hostile.base.sessions.dependencies.approvals.store.list_pending()
                await hostile.base.sessions.delete(session.id, who="owner")
                return INPUTS + 1

            yield run_round
    finally:
        logging.getLogger("freehold").removeHandler(log)
