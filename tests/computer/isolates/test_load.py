"""Very many isolates and contexts at once, in a computer with little memory and few processes."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.computer.isolates.conftest import NODE_PLACE, node_folder
from tests.computer.isolates.wasm_modules import COUNTER
from tests.support.condition import until

from freehold.computer import CodeContext, Computer, IsolateLimits, LimitEvent, Limits, Mount
from freehold.computer.contract.backend import find_host_pid
from freehold.computer.contract.spec import GIB
from freehold.computer.walls.deleted_files import MAX_IN_FLIGHT, measure_deleted
from freehold.computer.walls.processes import ComputerProcesses
from freehold.errors import FreeholdError
from freehold.guest.isolates.service import MAX_CONTEXTS, MAX_RUNNING

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

ISOLATES, CONTEXTS, PROCESSES = 1000, 200, 320
NUMBER = "import random, secrets; [{n}, random.random(), secrets.token_hex(8)]"
NUMBER_OF_JAVASCRIPT = "[{n}, Math.random(), crypto.randomUUID()]"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def small() -> AsyncIterator[Computer]:
    limits = Limits(memory=1 * GIB, processes=PROCESSES)
    async with Computer.start(limits=limits, mounts=[Mount(node_folder(), NODE_PLACE)]) as started:
        yield started


async def run_one(computer: Computer, number: int) -> list[object]:
    """Its own number and what it drew; every fifth is a hostile one, which ends in its own way."""
    match number % 5:
        case 0:
            return list(await computer.javascript.evaluate(NUMBER_OF_JAVASCRIPT.format(n=number)))
        case 1:
            return [await computer.wasm.evaluate(COUNTER, call=f"add({number}, 0)"), number, str(number)]
        case 2:
            crash = await computer.python.execute("import os; os.abort()")
            assert crash.exit_code < 0
            return [number, number, str(number)]
        case _:
            return list(await computer.python.evaluate(NUMBER.format(n=number)))


async def count_isolates(computer: Computer) -> int:
    """Processes besides the guest: zygotes and their children, without those that have ended."""
    return len([one for one in await computer.processes() if one.state != "Z"])


async def test_a_thousand_isolates_at_once_all_answer_within_the_limits(small: Computer) -> None:
    """A program that writes all the time goes on: not even for a moment are they taken for hidden files of the disk."""
    most = 0
    writer = await small.spawn(["/bin/sh", "-c", "while [ ! -e stop ]; do echo line > log; done"])
    running = asyncio.ensure_future(asyncio.gather(*(run_one(small, number) for number in range(ISOLATES))))
    while not running.done():
        most = max(most, await count_isolates(small))
        await asyncio.wait([running], timeout=0.1)
    answers = await running
    await small.files.write("stop", b"")
    assert (await writer.wait()).code == 0
    assert [answer[0] for answer in answers] == list(range(ISOLATES))
    for place in (1, 2):
        assert len({answer[place] for answer in answers}) == ISOLATES
    assert MAX_RUNNING <= PROCESSES / 2
    assert most < PROCESSES  # on a busy machine many that were killed have not ended yet
    assert small.machine is not None
    assert (small.machine.usage().memory or 0) < 1 * GIB

    async def only_spares_are_left() -> bool:
        """The guest removes the folder of an isolate a moment after it has ended."""
        folders = [entry for entry in await small.files.list("/tmp") if entry.name.startswith("isolate-")]
        return await count_isolates(small) <= 3 * 3 and not folders

    await until(only_spares_are_left)


async def test_many_isolates_at_once_are_not_taken_for_hidden_files(small: Computer) -> None:
    """Files may hide in the descriptors that wait in sockets: when there are many, the computer's writes are stopped."""
    assert small.machine is not None
    events: list[LimitEvent] = []
    leave = small.machine.subscribe(events.append)
    guest = find_host_pid(small.machine)
    assert guest is not None
    processes = ComputerProcesses(guest, os.geteuid(), None, 0)
    most = looks = 0
    running = asyncio.gather(*(small.python.evaluate("sum(range(200_000))") for _ in range(2 * MAX_RUNNING)))
    while not running.done():
        looks += 1
        most = max(most, (await asyncio.to_thread(measure_deleted, processes, ())).in_flight)
    await running
    leave()
    assert looks > 3
    assert most <= MAX_IN_FLIGHT / 2
    assert not [event for event in events if event.limit == "disk"]


async def test_two_hundred_contexts_at_once_keep_their_own_variables(small: Computer) -> None:
    async def open_one(number: int) -> CodeContext:
        context = await small.python.contexts.create(label=str(number))
        await context.execute(f"x = {number}")
        return context

    contexts = await asyncio.gather(*(open_one(number) for number in range(CONTEXTS)))
    values = await asyncio.gather(*(context.evaluate("x") for context in contexts))
    assert values == list(range(CONTEXTS))
    one_shot = await small.python.evaluate("'beside them'")
    assert one_shot == "beside them"
    assert Counter(info.state for info in await small.python.contexts.list()) == {"ready": CONTEXTS}
    await asyncio.gather(*(context.delete() for context in contexts))

    async def all_are_gone() -> bool:
        return await count_isolates(small) <= 3 * 3

    await until(all_are_gone)


async def test_there_is_a_limit_of_contexts_and_it_harms_nobody(small: Computer) -> None:
    """Their processes come when they are first used, so that an unused one costs one process at most."""
    contexts = [await small.python.contexts.create() for _ in range(MAX_CONTEXTS)]
    with pytest.raises(FreeholdError) as refused:
        await small.python.contexts.create()
    assert refused.value.code == "computer.busy"
    assert await contexts[0].evaluate("1 + 1") == 2
    await asyncio.gather(*(context.delete() for context in contexts))
    assert await small.python.contexts.list() == []


async def test_isolates_that_need_more_memory_than_there_is_end_alone(small: Computer) -> None:
    """Together they ask for three times the memory of the computer. Those that fit, and the guest, go on."""
    witness = await small.python.contexts.create()
    await witness.execute("n = 41")
    limits = IsolateLimits(memory=512 << 20)
    hungry = "x = b'x' * (400 << 20)\nimport time; time.sleep(0.2)\nlen(x)"
    results = await asyncio.gather(*(small.python.execute(hungry, limits=limits) for _ in range(8)))
    assert all(result.ok or result.exit_code < 0 or result.limit == "memory" for result in results)
    assert await small.python.evaluate("6 * 7") == 42
    info = await witness.info()
    assert info.state in ("ready", "ended")  # the kernel may have chosen it
    await witness.delete()
