"""How long does `freehold up` take to be ready, and what does it cost to stay up?

Cold is a home that does not exist yet, warm is the second start of it; nothing privileged is dropped in between. Beside
both: a bare uvicorn that serves one route, from its start to its first answer, in the same run.
"""

import atexit
import contextlib
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from bench.harness import Figure, main
from freehold.history.calls import GetHistoryStatus, TakeSnapshot
from freehold.home import find_home
from freehold.keeper.calls import GetKeeperStatus
from freehold.keeper.client import call_keeper
from freehold.keeper.processes import read_resident_bytes

BARE = """
import uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
uvicorn.run(app, host="127.0.0.1", port=%d, lifespan="off", log_level="error")
"""
SETTLE = 3.0
FILES = 20_000
UNSEEN_FILES = 200_000
SNAPSHOT_TIMEOUT = 600.0


@cache
def installed_environment() -> dict[str, str]:
    """The environment with a folder of compiled modules, which an installed Freehold has and a checkout may not have."""
    folder = tempfile.mkdtemp(prefix="bench-boot-compiled-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder}


class Home:
    def __init__(self, folder: Path) -> None:
        import socket

        self.home = find_home(folder / "home")
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        self.ports = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        names = ("FREEHOLD_GATEWAY_PORT", "FREEHOLD_KEEPER_PORT", "FREEHOLD_OBSERVE_METRICS_PORT")
        self.environment = {**installed_environment(), **dict(zip(names, map(str, self.ports), strict=True))}

    @contextlib.contextmanager
    def up(self) -> Iterator[float]:
        """Seconds from typing `freehold up` to ready, with it running."""
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "freehold.cli.main", "up", "--json", "--home", str(self.home.root)],
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if json.loads(line)["event"] == "ready":
                    break
            yield time.perf_counter() - start
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()

    def resident(self) -> dict[str, float]:
        """Megabytes of each program once it has come to rest."""
        time.sleep(SETTLE)
        status = call_keeper(self.home, GetKeeperStatus())
        found = {program.name: (program.memory or 0) / 1e6 for program in status.programs}
        return found | {"keeper": (status.keeper.memory or 0) / 1e6}

    def resident_together(self) -> float:
        """Megabytes of keeper and gateway. What both have of one file, such as a library, is in memory once."""
        status = call_keeper(self.home, GetKeeperStatus())
        pids = [status.keeper.pid, *(one.pid for one in status.programs if one.name == "gateway" and one.pid)]
        shared: dict[str, int] = {}
        own = 0
        for pid in pids:
            files: dict[str, int] = {}
            for name, resident, anonymous in _read_mappings(pid):
                own += anonymous
                files[name] = files.get(name, 0) + resident - anonymous
            for name, size in files.items():
                shared[name] = max(shared.get(name, 0), size)
        return (own + sum(shared.values())) * 1024 / 1e6

    def slowest_answer(self) -> float:
        """The longest that the keeper took to answer while it took a snapshot of many files, in milliseconds."""
        make_files(self.home.workspace / "many", FILES)
        working = threading.Thread(target=call_keeper, args=(self.home, TakeSnapshot()))
        working.start()
        slowest = 0.0
        while working.is_alive():
            slowest = max(slowest, _seconds(lambda: call_keeper(self.home, GetKeeperStatus())))
            slowest = max(slowest, _seconds(lambda: _get(self.ports[1], "/livez")))
        working.join()
        return slowest * 1000


def _read_mappings(pid: int) -> Iterator[tuple[str, int, int]]:
    """Of each mapping: the file, and how many kilobytes are in memory, of all and of those that are not of the file."""
    name, resident = "", 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == "Rss":
            resident = int(value.split()[0])
        elif key == "Anonymous":
            yield name, resident, int(value.split()[0])
        elif "-" in key.split(" ")[0]:
            name = line.split(maxsplit=5)[5] if len(line.split()) > 5 else ""


def make_files(folder: Path, count: int) -> None:
    for number in range(count):
        if number % 200 == 0:
            (folder / str(number)).mkdir(parents=True)
        (folder / str(number - number % 200) / f"{number}.txt").write_bytes(os.urandom(500))


def boot_with_unseen_files(home: Home, count: int) -> Iterable[Figure]:
    """A new home whose workspace is full of files that belong to whoever starts Freehold, as after a `git clone`."""
    make_files(home.home.workspace, count)
    if os.geteuid() == 0:
        name, change = "chown -R of them", ["chown", "-R", "1:1", str(home.home.workspace)]
        back = ["chown", "-R", "0:0", str(home.home.workspace)]
        peer = _seconds(lambda: subprocess.run(change, check=True))
        subprocess.run(back, check=True)
    else:
        name, change = "find through them", ["find", str(home.home.workspace), "-newer", "/"]
        peer = _seconds(lambda: subprocess.run(change, check=True, stdout=subprocess.DEVNULL))
    with home.up() as ready:
        recorded = call_keeper(home.home, GetHistoryStatus()).newest > 0
        rest = _seconds(lambda: call_keeper(home.home, TakeSnapshot(), timeout=SNAPSHOT_TIMEOUT))
    what, aim = f"up to ready with {count:,} unseen files", "before their snapshot, or ≤ 1.5 s"
    yield Figure(what, ready, "s", name, peer, aim, not recorded or ready <= 1.5)
    yield Figure("their first snapshot is done", ready + rest, "s", "ready", ready)


def _seconds(ask: Callable[[], object]) -> float:
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start


def _get(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers={"Host": f"localhost:{port}"})
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def bare_uvicorn(port: int) -> tuple[float, float]:
    """Seconds to the first answer, and megabytes."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", BARE % port], env=installed_environment())
    try:
        while not _get(port, "/"):
            time.sleep(0.005)
        took = time.perf_counter() - start
        return took, (read_resident_bytes(process.pid) or 0) / 1e6
    finally:
        process.terminate()
        process.wait()


def measure(quick: bool) -> Iterable[Figure]:
    rounds = 3 if quick else 7
    colds, warms, bares = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        last = Home(Path(folder) / "compiling")
        for _ in range(2):  # until everything is compiled
            with last.up():
                _get(last.ports[0], "/ready")
            bare_uvicorn(last.ports[0])
        for number in range(rounds):
            last = Home(Path(folder) / str(number))
            with last.up() as seconds:
                colds.append(seconds)
            with last.up() as seconds:
                warms.append(seconds)
            bares.append(bare_uvicorn(last.ports[0]))
        cold, warm = statistics.median(colds), statistics.median(warms)
        bare = statistics.median(seconds for seconds, _ in bares)
        yield Figure("up to ready, a home that did not exist", cold, "s", "bare uvicorn", bare, "≤ 0.8 s", cold <= 0.8)
        yield Figure("up to ready, the second start", warm, "s", "bare uvicorn", bare, "≤ 0.8 s", warm <= 0.8)
        memory = statistics.median(megabytes for _, megabytes in bares)
        with last.up():
            resident = last.resident()
            keeper, gateway = resident["keeper"], resident["gateway"]
            yield Figure("keeper, idle", keeper, "MB", "bare uvicorn", memory, "< 45 MB", keeper < 45)
            yield Figure("gateway, idle", gateway, "MB", "bare uvicorn", memory, "< 60 MB", gateway < 60)
            both = last.resident_together()
            aim = "≤ 100 MB"
            yield Figure(
                "keeper and gateway, idle together", both, "MB", "each for itself", keeper + gateway, aim, both <= 100
            )
            first, second = (_seconds(lambda: _get(last.ports[0], "/ready")) * 1000 for _ in range(2))
            yield Figure("first request, which loads the routes", first, "ms", "the second", second)
            used = last.resident()["gateway"]
            yield Figure("gateway, idle after it", used, "MB", "before it", gateway)
            ssh = resident.get("ssh", 0.0)
            yield Figure("SSH server before its first connection", ssh, "MB", aim="0 MB", met=ssh == 0)
            slowest = last.slowest_answer()
            name = f"slowest answer in a snapshot of {FILES:,} files"
            yield Figure(name, slowest, "ms", aim="≤ 100 ms", met=slowest <= 100)
        yield from boot_with_unseen_files(Home(Path(folder) / "unseen"), UNSEEN_FILES // 8 if quick else UNSEEN_FILES)


if __name__ == "__main__":
    main("How long does freehold up take, and what does it cost to stay up?", measure)
