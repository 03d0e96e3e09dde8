"""On a full disk, the command line, the API and the recovery page each tell the truth about an undo."""

import http.client
import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.faults.test_keeper_disk import needs_root, small_disk
from tests.support.freehold import FreeholdHarness
from tests.support.full_disk import fill_disk
from tests.support.recovery_restore import PageReply, wait_for_result
from tests.support.signed_in import RecoverySignIn, sign_in_to_recovery

from freehold.history.calls import ListEntries, MarkFiles, RequestAuthor
from freehold.identity.sign_ins import SignIns
from freehold.identity.tokens import ApiTokens

SMALL, LARGE = 300, 6 << 20
"""An undo of the small file needs only what history has set aside. One of the large file fits nowhere, not even if the
database gives some space back meanwhile."""
FILE = "file"

Door = Callable[[], tuple[bool, str]]
"""Undoes the last change. Returns whether it says that this was done, and all that it says."""


class Doors:
    """The ways to ask for an undo. Both sign-ins are made while there is space."""

    def __init__(self, harness: FreeholdHarness) -> None:
        self._harness = harness
        with ApiTokens(harness.home.identity, owner=None) as tokens:
            self._token = tokens.create("test", ["history"], None)[1]
        with SignIns(harness.home.identity) as sign_ins:
            self._recovery: RecoverySignIn = sign_in_to_recovery(sign_ins, harness.keeper_port)

    def command_line(self) -> tuple[bool, str]:
        done = self._harness.run("undo")
        return done.returncode == 0, done.stdout + done.stderr

    def api(self) -> tuple[bool, str]:
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        status, _, text = _send("POST", self._harness.gateway_port, "/v1/history/undo", b"{}", headers)
        assert status == 200 or "error" in json.loads(text)
        return status == 200, text

    def recovery_page(self) -> tuple[bool, str]:
        headers = self._recovery.headers | {"content-type": "application/x-www-form-urlencoded"}
        body = urlencode({"entry": ""}).encode()
        base, port = self._recovery.base, self._harness.keeper_port

        def ask(method: str, path: str, body: bytes | None) -> PageReply:
            status, location, text = _send(method, port, base + path, body, headers)
            return PageReply(status, location.removeprefix(base), text)

        found = wait_for_result(ask("POST", "/undo", body), lambda address: ask("GET", address, None))
        return found.status == 303, found.body


def _send(method: str, port: int, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, str, str]:
    """The status, the location and the text of the answer."""
    connection = http.client.HTTPConnection("localhost", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("location", ""), answer.read().decode()
    finally:
        connection.close()


def change_as_agent(harness: FreeholdHarness, content: bytes) -> int:
    """A turn that writes the file. Returns its entry."""
    agent = RequestAuthor(by="agent", session="s", turn="1")
    harness.call(MarkFiles("before", "turn", agent))
    (harness.home.workspace / FILE).write_bytes(content)
    found = harness.call(MarkFiles("after", "turn", agent, "a turn"))
    assert found.entry is not None
    return found.entry


def check_undo(harness: FreeholdHarness, disk: Path, door: Door, size: int, free: int) -> bool:
    """Returns whether it was done on the full disk."""
    path = harness.home.workspace / FILE
    old, new = (os.urandom(size) for _ in range(2))
    change_as_agent(harness, old)
    turn = change_as_agent(harness, new)
    ballast = fill_disk(disk, free)
    done, words = door()
    found = path.read_bytes()
    if done:
        assert found == old, words
    else:
        assert "Nothing was changed" in words, words
        assert found == new, words
    ballast.unlink()
    if not done:
        again, words = door()
        assert again, words
        assert path.read_bytes() == old
    later = [entry for entry in harness.call(ListEntries(limit=50)).entries if entry.id > turn]
    assert [entry.kind for entry in later] == ["undo"], later
    assert later[0].who.by == "owner"
    return done


@needs_root
@pytest.mark.parametrize("door", ["command_line", "api", "recovery_page"])
def test_every_door_tells_the_truth_about_an_undo_on_a_full_disk(tmp_path: Path, door: str) -> None:
    with small_disk(tmp_path / "disk", "128M") as disk:
        harness = FreeholdHarness(disk, FREEHOLD_HISTORY_RATE="1 GiB")
        with harness.keeper() as keeper:
            keeper.next("ready")
            act: Door = getattr(Doors(harness), door)
            assert check_undo(harness, disk, act, SMALL, 8 << 10), "history has set space aside for this"
            assert not check_undo(harness, disk, act, LARGE, 20 << 10)
            assert keeper.stop() == 0
