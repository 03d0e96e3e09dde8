"""The cost of the model gateway: a program inside, through link and gateway, compared with one that calls the model directly."""

import asyncio
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.computer.contract.conventions import MODEL_PORT
from freehold.egress.models import ModelGateway, read_providers
from freehold.egress.models.provider import Provider
from freehold.egress.models.upstream import UpstreamConnection, UpstreamPool
from freehold.egress.vault import Vault
from freehold.manifest.sections.models import ModelSection
from freehold.timeline import Timeline

FEW = 3
Rounds = list[Sequence[float]]
"""Of each round, the time to the first byte and the time a chunk."""
Measured = list[tuple[Rounds, Rounds, Rounds]]

CLIENT = """
import http.client, json, sys, time
port, path, key, rounds, words = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
door = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
body = json.dumps({"model": "m", "stream": True, "stream_options": {"include_usage": True},
                   "messages": [{"role": "user", "content": "SAY " + "x" * 12 * words}]})
found = []
for number in range(rounds + 3):
    began = time.perf_counter()
    door.request("POST", path, body, {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    answer = door.getresponse()
    answer.readline()
    first = time.perf_counter()
    lines = sum(1 for line in answer if line.startswith(b"data:"))
    done = time.perf_counter()
    time.sleep(0.03)  # an agent thinks between its questions, and the last one is written down meanwhile
    if number >= 3:
        found.append((first - began, (done - first) / lines))
print(json.dumps(found))
"""


@asynccontextmanager
async def model() -> AsyncIterator[int]:
    """The scripted model in a process of its own; its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "freehold.testing.model", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = json.loads(await process.stdout.readline())["url"]
    draining = asyncio.ensure_future(process.stdout.read())
    try:
        yield int(url.rpartition(":")[2])
    finally:
        process.terminate()
        await process.wait()
        await draining


class CountedPool(UpstreamPool):
    """Counts the connections that it opens."""

    opened = 0

    async def connect(self, provider: Provider) -> UpstreamConnection:
        self.opened += 1
        return await super().connect(provider)


async def measure_all(rounds: int, words: int, pool: UpstreamPool) -> Measured:
    """The model on the host, the link alone, and the gateway; each with a few words and with many."""
    folder = Path(tempfile.mkdtemp(prefix="freehold-bench-"))
    try:
        vault = Vault(folder / "vault")
        vault.set("key", "sk-0123456789-abcdefghij")
        async with model() as port, Computer.start() as computer:
            with Timeline(folder / "timeline.db") as timeline:
                address = f"http://127.0.0.1:{port}/v1"
                providers = read_providers(
                    {"local": ModelSection(kind="openai-compatible", base_url=address, key="secret:key")}
                )
                async with ModelGateway(timeline, providers, vault, {}, upstreams=pool) as gateway:
                    await computer.listen(MODEL_PORT, gateway.handle)
                    await computer.listen(MODEL_PORT + 1, relay_to(port))
                    key = gateway.endpoint_for("local", "s").key
                    found: Measured = []
                    # A burst of pieces keeps both cores busy, so that its first byte says little: few words for that.
                    for count in (FEW, words):
                        direct = await on_host(port, rounds, count)
                        link = await inside(computer, MODEL_PORT + 1, "/v1/chat/completions", key, rounds, count)
                        through = await inside(computer, MODEL_PORT, "/local/v1/chat/completions", key, rounds, count)
                        found.append((direct, link, through))
                    return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def relay_to(port: int):  # type: ignore[no-untyped-def]  # a handler of the link, for the peer only
    """Bytes to the model and back with nothing in between: what the link alone costs."""

    async def handle(tunnel) -> None:  # type: ignore[no-untyped-def]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def up() -> None:
            while data := await tunnel.read():
                writer.write(data)
            writer.write_eof()

        async def down() -> None:
            while data := await reader.read(65536):
                await tunnel.write(data)

        sending = asyncio.ensure_future(up())
        await down()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()

    return handle


async def on_host(port: int, rounds: int, words: int) -> Rounds:
    process = await asyncio.create_subprocess_exec(
        "python3",
        "-c",
        CLIENT,
        str(port),
        "/v1/chat/completions",
        "x",
        str(rounds),
        str(words),
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await process.communicate()
    return list(json.loads(told))


async def inside(computer: Computer, port: int, path: str, key: str, rounds: int, words: int) -> Rounds:
    command = ["python3", "-c", CLIENT, str(port), path, key, str(rounds), str(words)]
    result = await computer.run(command, timeout=120)
    assert result.exit_code == 0, result.stderr.decode()
    return list(json.loads(result.stdout))


def measure(quick: bool) -> Iterable[Figure]:
    rounds, words = (15, 200) if quick else (60, 400)
    pool = CountedPool()
    measured = asyncio.run(measure_all(rounds, words, pool))
    for place, name, aim in ((0, "time to the first byte", 3.0), (1, "time a chunk", 0.2)):
        alone, linked, gated = (statistics.median(each[place] for each in found) * 1000 for found in measured[place])
        yield Figure(f"{name}, inside through the gateway", gated, "ms", "the model itself, on the host", alone)
        yield Figure(f"{name}, inside through the link alone", linked, "ms")
        added = gated - alone
        yield Figure(f"{name}, added in all", added, "ms", aim=f"< {aim:g} ms", met=added < aim)
    # One for each of the two series, because the first may have waited too long for the second.
    yield Figure("connections to the provider for all questions", pool.opened, "", aim="<= 2", met=pool.opened <= 2)


if __name__ == "__main__":
    main(__doc__ or "", measure)
