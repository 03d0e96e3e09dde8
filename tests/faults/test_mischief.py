"""A hostile program inside does all of its mischief at once, for seconds, and the house around it stands."""

import asyncio
import json
import urllib.request
from pathlib import Path

from tests.support.freehold import FreeholdHarness

from freehold.computer.library.computer import Computer
from freehold.computer.walls.cgroups import find_parents
from freehold.errors import FreeholdError

SECONDS = 8

MISCHIEF = """
import os, random, socket, subprocess, sys, time
end = time.time() + float(sys.argv[1])

def fork_and_leave():
    if os.fork() == 0:
        os.setsid()
        time.sleep(0.5)
        os._exit(0)

def fill():
    with open(f"/workspace/big{random.randrange(9)}", "wb") as file:
        file.write(os.urandom(1 << 20))

def exchange():
    os.makedirs("/workspace/race", exist_ok=True)
    target = random.choice(["/etc", "/proc/self/root", "../../../../etc", "/workspace"])
    os.symlink(target, "/workspace/race/place")
    os.unlink("/workspace/race/place")
    os.mkdir("/workspace/race/place")
    os.rmdir("/workspace/race/place")

def odd_names():
    os.makedirs("/workspace/names", exist_ok=True)
    name = bytes(random.choice([n for n in range(1, 256) if n != 47]) for _ in range(255))
    open(b"/workspace/names/" + name, "wb").close()

def odd_files():
    os.makedirs("/workspace/odd", exist_ok=True)
    path = f"/workspace/odd/{random.randrange(99)}"
    os.mkfifo(path) if random.random() < 0.5 else socket.socket(socket.AF_UNIX).bind(path)

def shout():
    os.write(1, b"A" * 65536)

def knock():
    with socket.create_connection(("127.0.0.1", 3128), 1) as out:
        out.sendall(random.choice([os.urandom(4000), b"CONNECT h%d.example.org:443 HTTP/1.1\\r\\n\\r\\n" % random.randrange(9**9)]))
        out.recv(100)

def kill():
    time.sleep(1)
    for pid in [1, *(int(name) for name in os.listdir("/proc") if name.isdigit())]:
        if random.random() < 0.2 and pid != os.getpid():
            try:
                os.kill(pid, 9)
            except OSError:
                pass

def lock_up():
    os.makedirs("/workspace/locked/inside", exist_ok=True)
    os.chmod("/workspace/locked", 0)
    time.sleep(0.05)
    os.chmod("/workspace/locked", 0o700)

def eat():
    keep = [bytearray(10 << 20) for _ in range(400)]
    time.sleep(1)

for act in [fork_and_leave, fill, exchange, odd_names, odd_files, shout, knock, kill, lock_up, eat]:
    if os.fork() == 0:
        while time.time() < end:
            try:
                act()
            except (OSError, MemoryError):
                time.sleep(0.005)
        os._exit(0)
while time.time() < end:
    time.sleep(0.1)
"""


async def misbehave(link: Path, seconds: float) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    async with Computer.connect(link) as computer:
        await computer.files.write("/workspace/dear.txt", b"dear")
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                await computer.run(["python3", "-c", MISCHIEF, str(left)], timeout=left)
            except FreeholdError:  # it may have ended even itself
                await computer.wait_connected()


async def test_whatever_is_done_inside_the_house_answers_and_leaves_nothing_behind(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper() as keeper:
        keeper.next("ready")
        pid = keeper.process.pid
        async with asyncio.TaskGroup() as group:
            doing = group.create_task(misbehave(harness.home.computer_socket(), SECONDS))
            asked = 0
            while not doing.done():
                status = json.loads((await asyncio.to_thread(harness.run, "status", "--json")).stdout)
                assert status["keeper"]["pid"] == pid
                alive = await asyncio.to_thread(get, harness.gateway_port, "/livez")
                assert alive == {"alive": True}
                asked += 1
            assert asked
        async with Computer.start() as neighbour:
            assert (await neighbour.run("echo well")).stdout == b"well\n"
        await asyncio.to_thread(harness.run, "restart", "computer", check=True)
        before = json.loads((await asyncio.to_thread(harness.run, "log", "--json", check=True)).stdout)
        assert before
        undone = await asyncio.to_thread(harness.run, "undo", "--json")
        # Sockets and pipes are not kept, and a folder that holds them stays: that is told, and all else is done.
        assert undone.returncode in (0, 1)
        assert "Traceback" not in undone.stderr
        async with Computer.connect(harness.home.computer_socket()) as computer:
            assert (await computer.run("echo again")).stdout == b"again\n"
        keeper.process.terminate()
        keeper.next("stopped")
        assert keeper.process.wait(timeout=60) == 0
    assert "none changed" in (await asyncio.to_thread(harness.run, "timeline", "verify", check=True)).stdout
    assert not [left for parent in find_parents().values() for left in parent.folder.glob(f"freehold-{pid}.*")]
    assert not (harness.home.run.exists() and list(harness.home.run.glob("*.sock")))


def get(port: int, path: str) -> object:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return json.loads(answer.read())
