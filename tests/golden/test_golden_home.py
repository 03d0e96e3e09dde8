"""Homes made by released versions, each opened by the present code as its owner would: what was stored is still there.

Every folder beside this file holds the home of one version and what is to be found in it; see its README.md.
"""

import asyncio
import hashlib
import json
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.agents import link_agents
from tests.support.freehold import PROCESS_TIMEOUT, FreeholdHarness
from tests.support.signed_in import browser_headers

from freehold.testing import ScriptedModel

Json = dict[str, Any]

HERE = Path(__file__).parent
VERSIONS = sorted(archive.parent.name for archive in HERE.glob("*/home.tar.gz"))
assert VERSIONS, "there is no golden home"


class Golden:
    """The home of one version, unpacked into `folder`, and what is to be found in it."""

    def __init__(self, version: str, folder: Path) -> None:
        unpack(HERE / version / "home.tar.gz", folder)
        self.expected: Json = json.loads((HERE / version / "expected.json").read_text())
        self.folder = folder / "home"
        self.workspace = self.folder / "workspace"
        self.harness = FreeholdHarness(folder, FREEHOLD_SSH_ENABLED="true")

    def run(self, *words: str) -> str:
        done = self.harness.run(*words)
        assert done.returncode == 0, f"freehold {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    @contextmanager
    def up(self) -> Iterator[httpx2.Client]:
        """Running, with a client that has the token of then."""
        try:
            told = [json.loads(line) for line in self.run("up", "-d", "--json").splitlines()]
            assert told[-1]["event"] == "ready", told
            with self.client(authorization=f"Bearer {self.expected['keys']['token']}") as http:
                yield http
        finally:
            self.harness.run("down")

    def client(self, **headers: str) -> httpx2.Client:
        url = f"http://localhost:{self.harness.gateway_port}"
        return httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=PROCESS_TIMEOUT)


@pytest.fixture(params=VERSIONS)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    return Golden(request.param, tmp_path)


def unpack(archive: Path, folder: Path) -> None:
    """Everything comes to belong to whoever runs this, with its old mode and time to the nanosecond.

    History compares times: a home whose files look changed would get an entry of its own at its first start.
    """
    with tarfile.open(archive) as tar:
        for member in tar:
            place = folder / member.name
            if member.issym():
                place.symlink_to(member.linkname)
                continue
            if member.isdir():
                place.mkdir()
            else:
                file = tar.extractfile(member)
                assert file is not None, f"{member.name} is neither a file nor a folder nor a link"
                place.write_bytes(file.read())
            place.chmod(member.mode)
        for member in tar:
            moment = _nanoseconds(member)
            os.utime(folder / member.name, ns=(moment, moment), follow_symlinks=False)


def _nanoseconds(member: tarfile.TarInfo) -> int:
    return int(Decimal(member.pax_headers["mtime"]) * 10**9)


def files_in(workspace: Path) -> Json:
    """Every file and link, as expected.json writes them."""
    found: Json = {}
    for path in workspace.rglob("*"):
        name = str(path.relative_to(workspace))
        if path.is_symlink():
            found[name] = {"link": str(path.readlink())}
        elif path.is_file():
            mode = f"{stat.S_IMODE(path.stat().st_mode):04o}"
            found[name] = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "mode": mode}
    return found


def only(rows: list[Json], like: list[Json]) -> list[Json]:
    """The rows with no more keys than the first of `like`: what a later version tells besides is its own affair."""
    return [{key: row[key] for key in like[0]} for row in rows]


def entries(rows: list[Json], expected: Json) -> list[Json]:
    return only([{**row, "by": row["who"]["by"]} for row in rows], expected["history"])


def transcript(events: list[Json]) -> list[Json]:
    return [{key: event[key] for key in ("seq", "turn", "kind")} | {"says": _said(event)} for event in events]


def _said(event: Json) -> str | None:
    data = event["data"]
    match event["kind"]:
        case "turn.started":
            return str(data["prompt"]["text"])
        case "message":
            return str(data["text"])
        case "tool":
            return f"{data['title']}: {data['status']}"
        case "approval":
            return f"{data['title']}: {data['answer'] or data['state']}"
        case "turn.ended":
            return str(data["stop_reason"])
        case _:
            return None


def test_every_version_of_the_changelog_has_a_golden_home() -> None:
    """A version that gets a heading of its own gets a home as well."""
    changelog = (HERE.parents[1] / "CHANGELOG.md").read_text()
    told = re.findall(r"^## \[?(\d[^\]\s]*)", changelog, re.MULTILINE)
    assert told
    assert set(told) <= set(VERSIONS)


def test_a_home_is_unpacked_for_whoever_runs_the_test_with_its_modes_and_times(golden: Golden) -> None:
    with tarfile.open(HERE / golden.expected["version"] / "home.tar.gz") as tar:
        for member in tar:
            found = (golden.folder.parent / member.name).lstat()
            assert (found.st_uid, found.st_mtime_ns) == (os.geteuid(), _nanoseconds(member)), member.name
            assert member.issym() or stat.S_IMODE(found.st_mode) == member.mode, member.name


def egress_rules(rules: list[Json], reach: str) -> list[tuple[str, str, str]]:
    """0.1.0 calls the reach of a rule its scope."""
    return [(rule["verdict"], rule["rule"], rule[reach]) for rule in rules]


def test_a_home_at_rest_is_read_by_every_verb_that_needs_nothing_running(golden: Golden) -> None:
    expected = golden.expected
    golden.run("check")

    assert entries(golden.ask("log", "-n", "1000")["entries"], expected) == expected["history"]
    assert golden.ask("history", "verify")["damages"] == []
    for entry, files in expected["workspace"]["entries"].items():
        text = golden.run("show", f"{entry}:workspace/README.md")
        assert hashlib.sha256(text.encode()).hexdigest() == files["README.md"]["sha256"]

    head = expected["timeline"]["head"]
    assert golden.ask("timeline", "verify", "--head", head)["ok"]
    events = golden.run("timeline", "--after", "0", "--json").splitlines()
    assert len(events) == expected["timeline"]["events"]
    assert json.loads(events[-1])["seq"] == int(head.partition(":")[0])

    egress = golden.ask("egress")
    assert egress_rules(egress["rules"], "reach") == egress_rules(expected["egress"]["rules"], "scope")
    assert only(egress["pending"], expected["egress"]["pending"]) == expected["egress"]["pending"]
    assert [each["name"] for each in golden.ask("secret", "list")] == expected["secrets"]
    assert only(golden.ask("token", "list"), expected["tokens"]) == expected["tokens"]
    # Those of 0.1 were cookies, which browsers sent to every port of this machine. They end.
    assert golden.ask("sign-ins", "list") == []

    assert files_in(golden.workspace) == expected["workspace"]["now"]


def test_a_home_starts_and_its_owner_finds_everything(golden: Golden) -> None:
    expected = golden.expected
    with golden.up() as http:

        def get(path: str) -> Any:
            answer = http.get(path)
            assert answer.status_code == 200, f"{path}: {answer.text}"
            return answer.json()

        sessions = [*get("/v1/sessions")["sessions"], *get("/v1/sessions?archived=true")["sessions"]]
        for session in expected["sessions"]:
            found = next(each for each in sessions if each["id"] == session["id"])
            assert {**found, "transcript": session["transcript"]} == {**found, **session}
            events = transcript(get(f"/v1/sessions/{session['id']}/events?after=0&limit=1000")["events"])
            # A turn that the stop interrupted is told to have ended; nothing else comes after what was.
            assert events[: len(session["transcript"])] == session["transcript"]
            added = [event["kind"] for event in events[len(session["transcript"]) :]]
            assert added == (["error", "turn.ended"] if session["status"] == "needs_you" else [])
        assert len(sessions) == len(expected["sessions"])
        image = expected["image"]
        picture = http.get(f"/v1/sessions/{image['session']}/turns/{image['turn']}/images/0").content
        assert hashlib.sha256(picture).hexdigest() == image["sha256"]

        assert only(get("/v1/approvals"), expected["approvals"]) == expected["approvals"]
        assert only(get("/v1/approvals/policy")["rules"], expected["rules"]) == expected["rules"]
        egress = get("/v1/egress")
        assert egress["mode"] == expected["egress"]["mode"]
        assert egress_rules(egress["rules"], "reach") == egress_rules(expected["egress"]["rules"], "scope")
        assert only(egress["pending"], expected["egress"]["pending"]) == expected["egress"]["pending"]
        usage = [{**row, "session": row["key"][0]} for row in get("/v1/usage?by=session")["rows"]]
        assert only(usage, expected["usage"]) == expected["usage"]
        assert only(get("/v1/budgets")["budgets"], expected["budgets"]) == expected["budgets"]
        assert [each["name"] for each in get("/v1/secrets")] == expected["secrets"]
        assert get("/v1/ssh")["fingerprint"] == expected["ssh"]["fingerprint"]

        # Nothing looked changed at the start: otherwise there were an entry for it.
        assert entries(get("/v1/history?limit=1000")["entries"], expected) == expected["history"]
        assert files_in(golden.workspace) == expected["workspace"]["now"]
    assert golden.ask("timeline", "verify", "--head", expected["timeline"]["head"])["ok"]


def test_whoever_was_let_in_still_is_and_no_further_than_before(golden: Golden) -> None:
    keys = golden.expected["keys"]
    with golden.up() as http:
        assert "admin" in http.get("/v1/me").json()["scopes"]
        key = keys["cookie"].partition("=")[2]
        for old in ({"cookie": keys["cookie"]}, browser_headers(golden.harness.gateway_port, key)):
            with golden.client(**old) as browser:
                assert browser.get("/v1/me").status_code == 401
        with golden.client(authorization=f"Bearer {keys['read_only_token']}") as reader:
            assert reader.get("/v1/sessions").status_code == 200
            assert reader.get("/v1/tokens").status_code == 403
        wrong = keys["token"][:-1] + ("a" if keys["token"][-1] != "a" else "b")
        with golden.client(authorization=f"Bearer {wrong}") as stranger:
            assert stranger.get("/v1/sessions").status_code == 401


def test_a_home_goes_back_to_every_byte_of_before(golden: Golden) -> None:
    wanted = golden.expected["workspace"]
    with golden.up():
        golden.run("undo")
        assert files_in(golden.workspace) == wanted["after_undo"]
        golden.run("undo")
        assert files_in(golden.workspace) == wanted["after_two_undos"]
        golden.run("redo")
        golden.run("redo")
        assert files_in(golden.workspace) == wanted["now"]
        for entry, files in wanted["entries"].items():
            golden.run("restore", entry)
            assert files_in(golden.workspace) == files
        assert golden.ask("history", "verify")["damages"] == []
    # And with nothing running, back to where it was.
    golden.run("restore", str(golden.expected["history"][0]["id"]))
    assert files_in(golden.workspace) == wanted["now"]


async def test_an_agent_goes_on_with_an_old_conversation(golden: Golden) -> None:
    """It remembers what was said, has the key of then, and need not ask for what was allowed for ever."""
    session = next(each for each in golden.expected["sessions"] if each["title"] == "A dark page")
    allowed = next(rule["pattern"] for rule in golden.expected["rules"] if rule["effect"] == "allow")
    async with ScriptedModel() as model:
        golden.harness.environment |= {
            "FREEHOLD_MODELS_ANTHROPIC_BASE_URL": model.url,
            "FREEHOLD_MODELS_LOCAL_BASE_URL": f"{model.url}/v1",
        }
        link_agents(golden.folder / "agents", ("builtin",))

        def talk() -> list[Json]:
            with golden.up() as http:
                golden.run("chat", "-p", "--json", "--session", session["id"], f"RUN {allowed}")
                events = http.get(f"/v1/sessions/{session['id']}/events?after=0&limit=1000").json()["events"]
                return transcript(events)[len(session["transcript"]) :]

        said = await asyncio.to_thread(talk)
        asked = model.requests[-1]
    assert asked.key == golden.expected["keys"]["secret"]["FAKE_TEST_KEY"]
    assert asked.conversation is not None
    turns = asked.conversation.turns
    first = next(event["says"] for event in session["transcript"] if event["kind"] == "turn.started")
    assert any(first in turn.text for turn in turns)
    # Its own memory and not the transcript told anew: that has no answers of tools.
    assert sum(turn.role == "tool" for turn in turns) > 1
    assert any(event["kind"] == "tool" and event["says"].endswith(": completed") for event in said)
    assert not any(event["kind"] == "approval" for event in said)
    assert said[-1]["kind"] == "turn.ended"
