"""Runs one workflow inside the computer. The host sends the text of this file to python3: standard library only.

Both sides write one JSON object a line. The host sends the text of the workflow first. This program then asks for each
step by its place, and gets its result at once when the journal has it. `idle` says that nothing is left to do here
before an answer comes; the host may then end this process, and start it again when there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import json
import os
import queue
import sys
import threading
import traceback
import types
from collections import deque
from typing import Any, NamedTuple

MAX_ERROR = 4000
OTHER = "main can only await step, agent, command, ask, sleep, event and gather. Do everything else inside a step"


class StepFailed(Exception):
    """A step of the workflow failed. Catch it to go on."""


class CommandOutcome(NamedTuple):
    code: int
    output: str


class WorkflowCall:
    """What a workflow awaits: one step, or several at once."""

    def __init__(
        self, kind: str, title: str, given: dict[str, Any], local: Any = None, branches: Any = (), read: Any = None
    ) -> None:
        self.kind = kind
        self.title = title
        self.given = given
        self.local = local
        self.branches = branches
        self.read = read

    def __await__(self) -> Any:
        found = yield self
        return found if self.read is None else self.read(found)


def step(function: Any, *given: Any, again: bool = False, retries: int = 0, delay: float = 10) -> WorkflowCall:
    """WorkflowCall a function once, and keep its result, which is a JSON value.

    After a crash in the middle nobody knows how far it came: the workflow stops there and says so. With `again` it may
    be called a second time then. `retries` is how often it is tried again when it raises, after `delay` seconds first.
    """
    name = getattr(function, "__qualname__", repr(type(function)))
    options = {"again": bool(again), "retries": int(retries), "delay": float(delay)}
    return WorkflowCall(
        "step", name, {"function": name, "arguments": _describe(given), **options}, local=(function, given)
    )


def command(
    text: str, *, check: bool = True, again: bool = False, retries: int = 0, delay: float = 10, timeout: float = 3600
) -> WorkflowCall:
    """Run a shell command in the workspace. With `check`, an exit code other than 0 is a failure."""
    options = {"again": bool(again), "retries": int(retries), "delay": float(delay)}
    given = {"command": str(text), "check": bool(check), "timeout": float(timeout), **options}
    return WorkflowCall("command", str(text), given, read=lambda found: CommandOutcome(found["code"], found["output"]))


def agent(
    prompt: str, *, data: Any = None, agent: Any = None, model: Any = None, session: Any = None, timeout: float = 3600
) -> WorkflowCall:
    """Send a prompt to an agent, and get its answer. `data` is shown to it as data from outside.

    Each prompt has a session of its own, unless `session` names one: prompts with the same name go on with it.
    """
    given = {"prompt": str(prompt), "timeout": float(timeout)}
    for name, value in (("agent", agent), ("model", model), ("session", session)):
        if value is not None:
            given[name] = str(value)
    if data is not None:
        given["data"] = data
    return WorkflowCall("agent", str(prompt), given)


def ask(question: str, choices: Any = ()) -> WorkflowCall:
    """Ask the owner, and get one of the choices, or any text when there are none."""
    return WorkflowCall("ask", str(question), {"question": str(question), "choices": [str(one) for one in choices]})


def sleep(*, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> WorkflowCall:
    """Wait. No process runs meanwhile."""
    total = float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    return WorkflowCall("sleep", f"{total:g} s", {"seconds": total})


def event(name: str) -> WorkflowCall:
    """Wait for an event with this type, and get its data. A * at the end stands for the rest."""
    return WorkflowCall("event", str(name), {"name": str(name)})


def gather(*branches: Any) -> WorkflowCall:
    """Do several things at once, and get a list of their results when all have ended."""
    return WorkflowCall("gather", "", {}, branches=branches)


class Branch:
    """A line of steps: the workflow itself, or one of the things that a gather does. `place` is its number."""

    def __init__(self, work: Any, place: str, gathering: Any = None, index: int = 0) -> None:
        self.work = work
        self.place = place
        self.gathering = gathering
        self.index = index
        self.count = 0


class Gathering:
    def __init__(self, owner: Branch, size: int) -> None:
        self.owner = owner
        self.left = size
        self.results: list[Any] = [None] * size
        self.errors: list[Any] = [None] * size


class Scheduler:
    def __init__(self, channel: HostLine) -> None:
        self.channel = channel
        self.ready: deque[tuple[Branch, Any, Any]] = deque()
        self.waiting: dict[str, tuple[Branch, WorkflowCall]] = {}
        self.running = 0

    def run(self, work: Any) -> Any:
        root = Branch(work, "")
        self.ready.append((root, None, None))
        while True:
            while self.ready:
                branch, value, error = self.ready.popleft()
                try:
                    call = branch.work.send(value) if error is None else branch.work.throw(error)
                except StopIteration as end:
                    if branch is root:
                        return end.value
                    self.end_branch(branch, end.value, None)
                except Exception as problem:
                    if branch is root:
                        raise
                    self.end_branch(branch, None, problem)
                else:
                    self.begin(branch, call)
            self.see(self.channel.receive(idle=self.running == 0))

    def begin(self, branch: Branch, call: Any) -> None:
        if not isinstance(call, WorkflowCall):
            self.ready.append((branch, None, TypeError(OTHER)))
            return
        branch.count += 1
        place = f"{branch.place}{branch.count}"
        if call.kind != "gather":
            self.waiting[place] = (branch, call)
            self.channel.send({"do": place, "kind": call.kind, "title": call.title[:200], "given": call.given})
            return
        gathering = Gathering(branch, len(call.branches))
        if not call.branches:
            self.ready.append((branch, [], None))
        for index, one in enumerate(call.branches):
            self.ready.append((Branch(_follow(one), f"{place}.{index + 1}.", gathering, index), None, None))

    def end_branch(self, branch: Branch, value: Any, error: Any) -> None:
        gathering = branch.gathering
        gathering.results[branch.index], gathering.errors[branch.index] = value, error
        gathering.left -= 1
        if gathering.left == 0:
            problem = next((one for one in gathering.errors if one is not None), None)
            self.ready.append((gathering.owner, gathering.results, problem))

    def see(self, message: dict[str, Any]) -> None:
        if "ran" in message:  # of a thread of ours
            self.running -= 1
            self.channel.send(message)
            return
        place = message["of"]
        branch, call = self.waiting[place]
        if message.get("run"):
            self.running += 1
            threading.Thread(target=_call, args=(place, call.local, self.channel.inbox), daemon=True).start()
            return
        del self.waiting[place]
        if "error" in message:
            self.ready.append((branch, None, StepFailed(message["error"])))
        else:
            self.ready.append((branch, message["result"], None))


class HostLine:
    """The line to the host. Neither the workflow nor what it starts can write to it by accident."""

    def __init__(self) -> None:
        self.input = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self.output = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)
        self.inbox: queue.Queue[dict[str, Any]] = queue.Queue()
        self.got = 0

    def start(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.input:
            self.inbox.put(json.loads(line))
        os._exit(0)  # the host has gone

    def send(self, message: dict[str, Any]) -> None:
        self.output.write(json.dumps(message) + "\n")
        self.output.flush()

    def receive(self, idle: bool) -> dict[str, Any]:
        if idle and self.inbox.empty():
            self.send({"idle": self.got})
        message = self.inbox.get()
        if "of" in message:
            self.got += 1
        return message


def _follow(one: Any) -> Any:
    async def follow() -> Any:
        return await one

    return one if inspect.iscoroutine(one) else follow()


def _call(place: str, local: Any, inbox: Any) -> None:
    function, given = local
    try:
        found = function(*given)
        if inspect.iscoroutine(found):
            found = asyncio.run(found)
        json.dumps(found, allow_nan=False)
    except BaseException as error:
        inbox.put({"ran": place, "error": _tell(error)})
    else:
        inbox.put({"ran": place, "result": found})


def _describe(given: Any) -> Any:
    """The arguments of a step, to see later whether it is the same. What is no JSON value counts by its type."""
    try:
        return json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return [type(one).__name__ for one in given]


def _tell(error: BaseException) -> str:
    text = str(error) if isinstance(error, StepFailed) else f"{type(error).__name__}: {error}"
    return text[:MAX_ERROR]


def _load(begin: dict[str, Any]) -> Any:
    library = types.ModuleType("freehold_workflow")
    for one in (step, command, agent, ask, sleep, event, gather, StepFailed, CommandOutcome):
        setattr(library, one.__name__, one)
    sys.modules["freehold_workflow"] = library
    if begin["imports"]:
        sys.path.insert(0, begin["file"].rpartition("/")[0])
    module = types.ModuleType("workflow")
    module.__file__ = begin["file"]
    sys.modules["workflow"] = module
    exec(compile(begin["source"], begin["file"], "exec"), module.__dict__)  # noqa: S102 - what this program is for
    main = getattr(module, "main", None)
    if not inspect.iscoroutinefunction(main):
        raise TypeError("The file has no main: write async def main(data):")
    return main


def run_workflow() -> None:
    channel = HostLine()
    begin = json.loads(channel.input.readline())
    channel.start()
    try:
        result = Scheduler(channel).run(_load(begin)(begin["data"]))
        json.dumps(result, allow_nan=False)
    except BaseException as error:
        traceback.print_exc()
        channel.send({"end": "failed", "error": _tell(error)})
    else:
        channel.send({"end": "done", "result": result})
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    run_workflow()
