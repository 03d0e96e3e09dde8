"""What three whole Freeholds and a relay go through in network namespaces of their own, told on standard output.

Run as root of a user namespace with a network and mounts of its own: `python -m tests.mesh.namespace_story FOLDER`.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.atproto.certificates import make_certificates
from tests.mesh.namespace_freehold import OWNER
from tests.support.condition import until
from tests.support.processes import find_descendants

from freehold.slots.orchestrator.store import LOST

NAMES = ("home", "laptop", "friend", "relay")
FREEHOLDS = NAMES[:3]
SKEWED = {"friend": 600.0}
"""Seconds by which a clock is wrong."""
PATIENCE = 120.0
"""Seconds: what was lost is looked for again with growing pauses."""
OPEN_PORTS = "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start"
ORDINARY_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
RUNS = "/v1/slots/orchestrator/runs"
EVENTS = "/v1/slots/events?limit=500"
USED = ("beads", "pods", "events", "orchestrator")
"""The slots of the laptop that `home` keeps."""
OPEN = ("sending", "working")
"""Work whose end is not known. It may still be `sending` here while its agent asks there: the answer is on its way."""
OWN, FOREIGN = "wss://home.mesh.internal/relay", "wss://relay.mesh.internal"


def manifest(name: str) -> str:
    """`home` is a host with a relay that does work; the laptop registers there, and its items, documents and runs are there.

    What happens to the mesh of the laptop is also in the log of `home`.
    """
    text = f'[owner]\ndid = "{OWNER}"\n[gateway]\npublic_url = "https://{name}.mesh.internal"\n'
    if name == "home":
        return text + (
            '[slots]\nbeads = "local"\npods = "local"\nevents = "local"\norchestrator = "local"\n[agents]\ndefault = "builtin"\n'
            f'[mesh]\nmode = "host"\nname = "home"\nheartbeat = 1\nrelays = ["{FOREIGN}"]\n[mesh.relay]\nenabled = true\n'
        )
    there = 'mode = "external"\nsettings = { url = "neighbour:home" }\n'
    told = there.replace(" }", ', kinds = "mesh.*" }')
    used = (("beads", there), ("pods", there), ("events", told), ("orchestrator", there)) if name == "laptop" else ()
    slots = "".join(f"[slots.{slot}]\n{settings}" for slot, settings in used)
    client = 'mode = "client"\nhost = "https://home.mesh.internal"\nheartbeat = 1\n'
    mode = client if name == "laptop" else 'mode = "peer"\n'
    return text + f'{slots}[mesh]\n{mode}name = "{name}"\nrelays = ["{OWN}", "{FOREIGN}"]\n'


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def succeeds(*words: str) -> bool:
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


class Place:
    """One Freehold, or the relay, in its own network namespace. It can be cut off, killed and started again."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._folder = folder
        self._address = f"10.77.0.{NAMES.index(name) + 1}"
        self._link = f"v{NAMES.index(name)}"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        # It waits for a line, and by then it has its network. As an ordinary user it starts computers as most owners do.
        module = "namespace_freehold" if self.name in FREEHOLDS else "namespace_relay"
        inside = (*ORDINARY_USER, sys.executable, "-m", f"tests.mesh.{module}", self._address)
        more = (str(self._folder / self.name), str(SKEWED.get(self.name, 0.0))) if self.name in FREEHOLDS else ()
        script = f'{OPEN_PORTS} && exec "$@"'
        self._process = await asyncio.create_subprocess_exec(
            *("unshare", "--net", "sh", "-c", script, "sh", *inside, str(self._folder / "certificates"), *more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=1 << 22,
        )
        await until(self._has_network)
        enter = ("nsenter", "-t", str(self._process.pid), "-n", "ip")
        run("ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", str(self._process.pid))
        run("ip", "link", "set", self._link, "master", "br0", "up")
        run(*enter, "link", "set", "lo", "up")
        run(*enter, "addr", "add", f"{self._address}/24", "dev", "eth0")
        run(*enter, "link", "set", "eth0", "up")
        await self._write(json.dumps(manifest(self.name)))
        assert (await self._read()).strip() == b"ready"

    def _has_network(self) -> bool:
        """Whether it has left our network namespace."""
        assert self._process is not None
        return Path(f"/proc/{self._process.pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()

    async def kill(self) -> None:
        """All of its programs at once, as when the power fails."""
        assert self._process is not None
        for pid in [self._process.pid, *find_descendants(self._process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await self._process.wait()
        # The kernel takes its network apart a moment later.
        succeeds("ip", "link", "del", self._link)
        await until(lambda: not succeeds("ip", "link", "show", self._link))

    async def stop(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(60):
            await self._process.wait()

    def connect(self, is_on: bool) -> None:
        run("ip", "link", "set", self._link, "up" if is_on else "down")

    async def ask(self, method: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        await self._write(json.dumps({"method": method, "path": path, "body": body}))
        found, answer = json.loads(await self._read())
        assert (found < 400) if status is None else (found == status), (self.name, method, path, found, answer)
        return answer

    async def _write(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()

    async def _read(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        async with asyncio.timeout(90):
            return await self._process.stdout.readline()


async def pair(maker: Place, other: Place, *grants: str) -> None:
    code = await maker.ask("POST", "/v1/mesh/codes", {"grants": list(grants), "name": other.name})
    shown = await other.ask("POST", "/v1/mesh/codes/read", {"code": code["code"]})
    assert (shown["npub"], shown["did"]) == ((await maker.ask("GET", "/v1/mesh"))["npub"], OWNER)
    await other.ask("POST", "/v1/mesh/neighbours", {"code": code["code"], "name": maker.name})


async def finds(place: Place, path: str, is_right: Callable[[Any], bool]) -> Any:
    found: list[Any] = []

    async def look() -> bool:
        found[:] = [await place.ask("GET", path)]
        return is_right(found[0])

    await until(look, PATIENCE)
    return found[0]


def has_text(text: str) -> Callable[[Any], bool]:
    return lambda found: any(one["content"] == text for one in found)


def is_registered(found: Any) -> bool:
    return bool(found["registration"]["state"] == "registered")


def relays_are(**states: str) -> Callable[[Any], bool]:
    """`own` is the relay of `home`, `foreign` the other one."""
    urls = {"own": OWN, "foreign": FOREIGN}
    wanted = {urls[name]: state for name, state in states.items()}
    return lambda found: wanted.items() <= {one["url"]: one["state"] for one in found["relays"]}.items()


def slots_are(state: str) -> Callable[[Any], bool]:
    return lambda found: all(one["state"] == state for one in found if one["name"] in USED)


def was_told(kind: str, state: str) -> Callable[[Any], bool]:
    """Whether the log of a host has what happened at a neighbour, once."""

    def look(found: Any) -> bool:
        of_kind = [one for one in found["events"] if one["type"] == f"freehold.neighbour.{kind}"]
        told = [one for one in of_kind if one["data"]["data"]["state"] == state]
        assert len({one["data"]["id"] for one in told}) == len(told), told
        return bool(told)

    return look


async def allow(home: Place) -> bool:
    """The owner of the host allows what agents ask there. Whether there was something."""
    asked = await home.ask("GET", "/v1/approvals")
    for one in asked:
        await home.ask("POST", f"/v1/approvals/{one['id']}", {"answer": "once"})
    return bool(asked)


async def share(home: Place, laptop: Place, friend: Place) -> None:
    await finds(laptop, "/v1/mesh", is_registered)
    await finds(laptop, "/v1/slots", slots_are("ok"))
    await laptop.ask("POST", "/v1/slots/beads/items", {"title": "Mend the roof"})
    assert [one["title"] for one in (await home.ask("GET", "/v1/slots/beads/items"))["beads"]] == ["Mend the roof"]
    await laptop.ask("PUT", "/v1/slots/pods/data/notes/plan.json", {"days": 3})
    assert await home.ask("GET", "/v1/slots/pods/data/notes/plan.json") == {"days": 3}
    await finds(home, EVENTS, was_told("mesh.registration_changed", "registered"))
    await laptop.ask("POST", "/v1/mesh/neighbours/friend/messages", {"text": "over the relays"})
    await finds(friend, "/v1/mesh/messages", has_text("over the relays"))


async def work(home: Place, laptop: Place, friend: Place) -> None:
    """By the orchestrator slot of the laptop, and by a friend whose clock is wrong."""
    run = await laptop.ask("POST", RUNS, {"prompt": "WRITE /workspace/page.html made-there\nSAY Done."})
    job = await friend.ask("POST", "/v1/mesh/work", {"neighbour": "home", "prompt": "WRITE /workspace/poem.txt autumn"})

    async def is_over() -> bool:
        await allow(home)
        states = (
            (await laptop.ask("GET", f"{RUNS}/{run['id']}"))["state"],
            (await friend.ask("GET", f"/v1/mesh/work/{job['id']}"))["work"]["state"],
        )
        return states == ("done", "returned")

    await until(is_over, PATIENCE)
    said = await laptop.ask("GET", f"{RUNS}/{run['id']}/events")
    assert any("Done." in str(one["data"]) for one in said["events"])
    (file,) = (await laptop.ask("GET", f"{RUNS}/{run['id']}/changes"))["files"]
    assert (file["path"], "made-there" in file["diff"]) == ("page.html", True)
    await laptop.ask("POST", f"{RUNS}/{run['id']}/changes", {"how": "merge"})
    merged = next(one for one in await laptop.ask("GET", "/v1/mesh/work") if one["id"] == run["id"])
    accepted = await friend.ask("POST", f"/v1/mesh/work/{job['id']}/accept", {"folder": "poems"})
    for place, name, entry in ((laptop, "page.html", merged["entry"]), (friend, "poems", accepted["entry"])):
        assert name in await names(place)
        await place.ask("POST", "/v1/history/revert", {"entry": entry})
        assert name not in await names(place)
    assert await names(home) == []


async def names(place: Place) -> list[str]:
    return [one["name"] for one in (await place.ask("GET", "/v1/files/list"))["entries"]]


async def partition(home: Place, laptop: Place, friend: Place) -> None:
    laptop.connect(False)
    await friend.ask("POST", "/v1/mesh/neighbours/laptop/messages", {"text": "while you were away"})
    await finds(home, "/v1/mesh/clients", lambda found: found == [])
    refused = await laptop.ask("GET", "/v1/slots/beads/items", status=503)
    assert refused["error"]["code"] == "beads.unavailable"
    laptop.connect(True)
    await finds(laptop, "/v1/mesh", is_registered)
    await finds(laptop, "/v1/mesh/messages", has_text("while you were away"))
    await finds(laptop, "/v1/slots", slots_are("ok"))
    assert len((await laptop.ask("GET", "/v1/slots/beads/items"))["beads"]) == 1
    assert await laptop.ask("GET", "/v1/slots/pods/data/notes/plan.json") == {"days": 3}
    # What happened there meanwhile has waited.
    await finds(home, EVENTS, was_told("mesh.registration_changed", "away"))


async def lose_host(home: Place, laptop: Place, friend: Place) -> None:
    prompt = "WRITE /workspace/one.txt words\nWRITE /workspace/two.txt words\nSAY Done."
    job = await laptop.ask("POST", "/v1/mesh/work", {"neighbour": "home", "prompt": prompt, "title": "Killed"})
    await finds(home, "/v1/approvals", bool)
    await home.kill()
    await finds(laptop, "/v1/mesh", relays_are(own="away", foreign="ok"))
    await laptop.ask("POST", "/v1/mesh/neighbours/friend/messages", {"text": "home is dead"})
    await finds(friend, "/v1/mesh/messages", has_text("home is dead"))
    await home.start()
    found = await finds(laptop, f"/v1/mesh/work/{job['id']}", lambda found: found["work"]["state"] not in OPEN)
    assert (found["work"]["state"], found["work"]["error"]) == ("lost", LOST), found
    assert [one["title"] for one in (await home.ask("GET", RUNS))["runs"]].count("Killed") == 1
    await finds(laptop, "/v1/mesh", is_registered)


async def lose_relay(relay: Place, laptop: Place, friend: Place) -> None:
    await finds(laptop, "/v1/mesh", relays_are(own="ok"))
    await relay.kill()
    await finds(laptop, "/v1/mesh", relays_are(own="ok", foreign="away"))
    await finds(friend, "/v1/mesh", relays_are(own="ok"))
    await friend.ask("POST", "/v1/mesh/neighbours/laptop/messages", {"text": "by the relay of home"})
    await finds(laptop, "/v1/mesh/messages", has_text("by the relay of home"))
    await relay.start()
    await finds(laptop, "/v1/mesh", relays_are(own="ok", foreign="ok"))
    texts = [one["content"] for one in await laptop.ask("GET", "/v1/mesh/messages")]
    assert sorted(texts) == ["by the relay of home", "while you were away"]


async def evict(home: Place, laptop: Place) -> None:
    await home.ask("DELETE", "/v1/mesh/neighbours/laptop")
    await finds(laptop, "/v1/mesh", lambda found: found["registration"]["state"] == "evicted")
    assert (await laptop.ask("GET", "/v1/slots/beads/items", status=503))["error"]["code"] == "beads.unavailable"
    await pair(home, laptop, "beads", "register")
    await finds(laptop, "/v1/mesh", is_registered)


async def tell(home: Place, laptop: Place, friend: Place, relay: Place) -> None:
    made = await friend.ask("POST", "/v1/mesh/codes", {"grants": []})
    ahead = datetime.fromisoformat(made["expires"]).timestamp() - datetime.now().timestamp()
    assert ahead > 600 + 500, ahead  # a code is valid for ten minutes
    await pair(home, laptop, "beads", "pods", "events", "register", "work")
    await pair(home, friend, "work")
    await pair(friend, laptop)
    print("paired, also with a clock that is ten minutes wrong", flush=True)
    await share(home, laptop, friend)
    print("registered, slots used, a message passed", flush=True)
    await work(home, laptop, friend)
    print("work sent, returned, accepted and undone", flush=True)
    await partition(home, laptop, friend)
    print("cut off and connected again", flush=True)
    await lose_host(home, laptop, friend)
    print("the host killed in the middle of a job and back", flush=True)
    await lose_relay(relay, laptop, friend)
    print("a relay lost and back", flush=True)
    await evict(home, laptop)
    print("evicted and paired again", flush=True)


async def main(folder: Path) -> None:
    make_certificates(folder / "certificates", [f"{name}.mesh.internal" for name in NAMES])
    hosts = folder / "hosts"
    lines = [f"10.77.0.{place + 1} {name}.mesh.internal" for place, name in enumerate(NAMES)]
    hosts.write_text("127.0.0.1 localhost\n" + "\n".join(lines) + "\n")
    run("mount", "--bind", str(hosts), "/etc/hosts")
    run("ip", "link", "add", "br0", "type", "bridge")
    run("ip", "link", "set", "br0", "up")
    os.environ["SSL_CERT_FILE"] = str(folder / "certificates" / "authority.pem")
    story = [Place(folder, name) for name in NAMES]
    await asyncio.gather(*(one.start() for one in story))
    await tell(*story)
    await asyncio.gather(*(one.stop() for one in story))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
