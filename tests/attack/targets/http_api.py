"""The whole API with generated requests, against a Freehold that runs: computer, keeper, history and a session.

Schemathesis makes the requests from the API's own description, valid ones and invalid ones. Real ids and odd paths are
put into some of them, so that they reach further than a first check. No answer may be a server error or differ from
the description, no link to the computer may end, and no program may restart.
"""

import asyncio
import itertools
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisDeprecationWarning
from schemathesis.checks import CHECKS, not_a_server_error
from schemathesis.core.result import Ok
from tests.attack.target import RunRound
from tests.support.condition import DEADLINE, until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold
from tests.support.signed_in import browser_headers
from websockets.asyncio.client import ClientConnection, connect

from freehold.errors import find_kind
from freehold.identity.sign_ins import SignIns

OPERATIONS = 6
"""Of each round."""
EXAMPLES = 2
"""Of each operation and mode."""
REQUEST_TIMEOUT = 60.0
"""Seconds. Nothing that is asked here takes more than a few, also on a busy disk."""
CHECKED = ("response_schema_conformance", "content_type_conformance", "status_code_conformance")

SLOTS = """\
[slots]
beads = "local"
pods = "local"
memory = "local"
events = "local"
"""
"""Without the orchestrator: each of its runs is a computer."""
OPTIONS = FreeholdOptions(agents=("builtin",), manifest=SLOTS, environment={"FREEHOLD_SSH_ENABLED": "true"})

SIGNS_OUT = {"DELETE /v1/me", "POST /v1/sign-out", "DELETE /v1/sign-ins", "DELETE /v1/sign-ins/{sign_in_id}"}
STREAMS = {"GET /v1/slots/events/stream"}
UNDONE_BY = {"POST /v1/doctor": ("DELETE", "/v1/doctor"), "POST /v1/stop": ("POST", "/v1/stop/lift")}
"""What would disturb the next requests, and how it is ended."""

ODD_PATHS = (
    ".",
    "..",
    "/",
    "",
    "notes.txt",
    "folder",
    "folder/inner.txt",
    "no/such/thing",
    "/proc/self/mem",
    "/proc/1/environ",
    "/proc/self/fd",
    "/dev/zero",
    "/dev/stdin",
    "/etc/passwd",
    "loop",
    "pipe",
    "n" * 255,
    "n" * 256,
    "long/" * 400,
    "x" * 2000,
    "x" * 4095,
    "x" * 16_000,
    "\\xff\\xfe",
    "\\x00",
    "a\nb",
    "ä" * 127,
)


@dataclass
class KnownIds:
    """Ids that exist, by the name of the path parameter."""

    values: dict[str, list[Any]] = field(default_factory=dict)


class ApiAttack:
    """Sends generated requests to one Freehold. Its blocking methods run in a thread."""

    def __init__(self, freehold: RunningFreehold, description: dict[str, Any]) -> None:
        self._freehold = freehold
        schema = schemathesis.openapi.from_dict(without_tuples(description))
        self._operations: dict[str, Any] = {}
        for found in schema.get_all_operations():
            assert isinstance(found, Ok)
            operation = found.ok()
            self._operations[f"{operation.method.upper()} {operation.path}"] = operation
        self._checks = [not_a_server_error, *(CHECKS.get_one(name) for name in CHECKED)]
        self._headers = self._sign_in()
        self._http = requests.Session()
        self._http.trust_env = False
        self.tried = 0

    @property
    def operations(self) -> list[str]:
        """Each as METHOD /path."""
        return list(self._operations)

    def close(self) -> None:
        self._http.close()

    def attack(self, random: Random, known: KnownIds, chosen: list[str] | None = None) -> int:
        """Some operations, each with valid and with invalid requests. Returns how many requests were sent."""
        before = self.tried
        for name in chosen or random.sample(self.operations, OPERATIONS):
            operation = self._operations[name]
            self._attack_operation(operation, schemathesis.GenerationMode.POSITIVE, random, known)
            if takes_input(operation):
                self._attack_operation(operation, schemathesis.GenerationMode.NEGATIVE, random, known)
        return self.tried - before

    def _attack_operation(
        self, operation: Any, mode: schemathesis.GenerationMode, random: Random, known: KnownIds
    ) -> None:
        found: list[Exception] = []

        @seed(random.getrandbits(64))
        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def attempt(case: Any) -> None:
            if found:
                return
            _put_known(case, random, known)
            try:
                self._send(case)
            except Exception as error:
                # Not raised here: Hypothesis would send the request again, and the first one may have changed the state.
                found.append(error)

        with warnings.catch_warnings():
            # Hypothesis takes numbers that other threads draw from `random` for ours.
            warnings.simplefilter("ignore", HypothesisDeprecationWarning)
            attempt()
        if found:
            raise found[0]

    def _open_stream(self, case: Any) -> None:
        """Only its beginning: it has no end."""
        request = case.as_transport_kwargs(base_url=self._freehold.url, headers=self._headers)
        with self._http.request(**request, stream=True, timeout=REQUEST_TIMEOUT) as response:
            assert response.status_code < 500, f"{case.as_curl_command()}\n{response.status_code}"
        self.tried += 1

    def _send(self, case: Any) -> None:
        name = f"{case.method} {case.path}"
        if name in STREAMS:
            self._open_stream(case)
            return
        response = case.call(
            base_url=self._freehold.url, headers=self._headers, session=self._http, timeout=REQUEST_TIMEOUT
        )
        self.tried += 1
        if response.status_code >= 400:
            _check_error(case, response)
        else:
            case.validate_response(response, checks=self._checks)
        if name in SIGNS_OUT:
            self._headers = self._sign_in()
        elif name in UNDONE_BY and response.status_code < 300:
            method, path = UNDONE_BY[name]
            undone = self._http.request(
                method, self._freehold.url + path, headers=self._headers, timeout=REQUEST_TIMEOUT
            )
            assert undone.status_code == 200, undone.text

    def _sign_in(self) -> dict[str, str]:
        with SignIns(self._freehold.home.identity, owner=None) as sign_ins:
            _, secret = sign_ins.create(None, label="test", address="127.0.0.1", method="link")
        return browser_headers(self._freehold.harness.gateway_port, secret)


def takes_input(operation: Any) -> bool:
    """What takes nothing but the credentials, which its caller gives, has no wrong input, and a search for one is long."""
    return bool(operation.body) or any(one.name != "Authorization" for one in operation.iter_parameters())


def without_tuples(part: Any) -> Any:
    """Schemathesis takes `prefixItems` for the `items` of an older version of JSON Schema."""
    if isinstance(part, list):
        return [without_tuples(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {
        "items" if name == "prefixItems" else name: {"anyOf": value} if name == "prefixItems" else without_tuples(value)
        for name, value in part.items()
    }


def _check_error(case: Any, response: Any) -> None:
    """The one shape of errors, with the status that the table of errors gives to its code."""
    shown = f"{case.as_curl_command()}\n{response.status_code} {response.text[:2000]}"
    assert response.status_code < 500, shown
    assert response.headers["content-type"] == ["application/json"], shown
    body = response.json()
    assert set(body) == {"error"}, shown
    assert {"code", "message", "hint"} == set(body["error"]), shown
    kind = find_kind(body["error"]["code"])
    assert kind is not None, shown
    is_condition = body["error"]["code"] == "pods.conflict" and response.status_code == 412
    assert kind.status == response.status_code or is_condition, shown
    has_own_credentials = any(part in shown for part in ("sign-in", "/v1/hooks/"))
    assert response.status_code not in (401, 403) or has_own_credentials or kind.name == "permission", shown


def _put_known(case: Any, random: Random, known: KnownIds) -> None:
    """Replaces some generated values by ids that exist, and some paths by odd ones."""
    for name in case.path_parameters or ():
        if known.values.get(name) and random.random() < 0.7:
            case.path_parameters[name] = random.choice(known.values[name])
    for place in (case.query, case.body):
        if not isinstance(place, dict):
            continue
        for name in ("path", "to", "folder", "after"):
            if isinstance(place.get(name), str) and random.random() < 0.5:
                place[name] = random.choice(ODD_PATHS)
        if "entry" in place and known.values.get("entry") and random.random() < 0.7:
            place["entry"] = random.choice(known.values["entry"])
    if isinstance(case.body, dict) and case.path.startswith("/v1/models/"):
        # Nothing may be sent to a real provider.
        case.body["base_url"] = known.values["base_url"][0]


async def find_known_ids(freehold: RunningFreehold, watched: str) -> KnownIds:
    """The ids that exist now, without the terminal that watches the link."""
    sessions = (await freehold.call("GET", "/v1/sessions?limit=20"))["sessions"]
    entries = (await freehold.call("GET", "/v1/history?limit=20"))["entries"]
    approvals = await freehold.call("GET", "/v1/approvals")
    terminals = await freehold.call("GET", "/v1/terminals")
    return KnownIds(
        {
            "session": [session["id"] for session in sessions],
            "entry": [entry["id"] for entry in entries],
            "approval": [approval["id"] for approval in approvals],
            "terminal": [terminal["id"] for terminal in terminals if terminal["id"] != watched],
            "turn": [1],
            "place": [0],
            "base_url": [f"{freehold.model.url}/v1"],
        }
    )


@dataclass
class LinkWatch:
    """A terminal that stays attached. It ends when the gateway loses its link to the computer."""

    terminal: str
    socket: ClientConnection
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def check(self) -> None:
        number = next(self._numbers)
        await self.socket.send(f"echo alive'-'{number}.\n".encode())
        seen = b""
        async with asyncio.timeout(DEADLINE):
            while f"alive-{number}.".encode() not in seen:
                received = await self.socket.recv()
                assert isinstance(received, bytes)
                seen += received


@asynccontextmanager
async def watch_link(freehold: RunningFreehold) -> AsyncIterator[LinkWatch]:
    made = await freehold.http.post("/v1/terminals", json={})
    terminal = made.json()["id"]
    address = f"ws://localhost:{freehold.harness.gateway_port}/v1/terminals/{terminal}/socket"
    async with connect(address, additional_headers=freehold.headers, proxy=None, compression=None) as socket:
        watch = LinkWatch(terminal, socket)
        await watch.check()
        yield watch


async def prepare(freehold: RunningFreehold) -> None:
    """Files, history, a conversation, and a permission request that waits."""
    await until(freehold.is_connected)
    for path in ("notes.txt", "folder/inner.txt"):
        await freehold.http.put("/v1/files/content", params={"path": path}, content=b"one two three\n")
    freehold.file("loop").symlink_to("loop")
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, "SAY Good morning")
        await freehold.prompt(session, "RUN true")
        await watch.until("approval", state="pending")


@dataclass(frozen=True)
class RunningAttack:
    """An attack on a Freehold that runs."""

    freehold: RunningFreehold
    requests: ApiAttack
    link: LinkWatch
    pids: dict[str, int | None]

    @property
    def operations(self) -> list[str]:
        return self.requests.operations

    async def run_round(self, random: Random, chosen: list[str] | None = None) -> int:
        """Some operations, or these. Then everything must still run."""
        known = await find_known_ids(self.freehold, self.link.terminal)
        tried = await asyncio.to_thread(self.requests.attack, random, known, chosen)
        await self.link.check()
        assert find_pids(self.freehold) == self.pids, "a program was restarted"
        return tried


def find_pids(freehold: RunningFreehold) -> dict[str, int | None]:
    return {name: program.pid for name, program in freehold.harness.programs().items()}


@asynccontextmanager
async def open_api_attack(folder: Path) -> AsyncIterator[RunningAttack]:
    async with run_freehold(folder, OPTIONS) as freehold:
        await prepare(freehold)
        description = await freehold.call("GET", "/v1/openapi.json")
        attack = await asyncio.to_thread(ApiAttack, freehold, description)
        try:
            async with watch_link(freehold) as link:
                yield RunningAttack(freehold, attack, link, find_pids(freehold))
        finally:
            attack.close()


@asynccontextmanager
async def open_target(folder: Path) -> AsyncIterator[RunRound]:
    async with open_api_attack(folder) as attack:
        yield attack.run_round
