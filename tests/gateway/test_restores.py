"""The progress of an undo over HTTP, and its cancellation. The undo is held where it reads a stored content."""

import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.condition import DEADLINE, wait_until
from tests.support.freehold import FreeholdHarness
from tests.support.held_restore import SMALL_FILES, hold_undo

from freehold.client import Freehold
from freehold.client._sync.freehold import SyncFreehold
from freehold.errors import FreeholdError
from freehold.identity.tokens import ApiTokens, Scope

pytestmark = pytest.mark.shared_processes


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeholdHarness]:
    harness = FreeholdHarness(tmp_path_factory.mktemp("restores"))
    with harness.keeper() as keeper:
        keeper.next("ready")
        yield harness


@contextmanager
def connect(harness: FreeholdHarness, *scopes: Scope) -> Iterator[SyncFreehold]:
    with ApiTokens(harness.home.identity, owner=None) as tokens:
        _, secret = tokens.create(f"test-{secrets.token_hex(4)}", scopes, None)
    with Freehold.sync(harness.url, token=secret, timeout=DEADLINE) as home:
        yield home


class Undo:
    """An undo that is asked for in a thread of its own."""

    def __init__(self, harness: FreeholdHarness, name: str) -> None:
        self.outcome: Any = None
        self.error: FreeholdError | None = None
        self._thread = threading.Thread(target=self._run, args=(harness, name), daemon=True)
        self._thread.start()

    def _run(self, harness: FreeholdHarness, name: str) -> None:
        with connect(harness, "history") as home:
            try:
                self.outcome = home.history.undo(restore_id=name)
            except FreeholdError as error:
                self.error = error

    def join(self) -> None:
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()


def large_file(harness: FreeholdHarness) -> Path:
    (found,) = harness.home.workspace.glob("held-*/large")
    return found


@pytest.fixture(autouse=True)
def workspace_without_files(harness: FreeholdHarness) -> Iterator[None]:
    yield
    for folder in harness.home.workspace.glob("held-*"):
        shutil.rmtree(folder)


def test_an_undo_shows_how_far_it_is_and_is_finished(harness: FreeholdHarness) -> None:
    with hold_undo(harness.home) as held, connect(harness, "read") as reader:
        assert reader.history.restores() == ()
        undo = Undo(harness, "mine")
        held.wait()
        (found,) = reader.history.restores()
        assert (found.id, found.kind, found.phase, found.cancellable) == ("mine", "undo", "preparing", True)
        assert 0 < found.done <= found.total
        assert found.total >= SMALL_FILES
        held.release()
        undo.join()
        assert undo.outcome.unsettled == ()
        assert reader.history.restores() == ()
    assert large_file(harness).stat().st_size > 3


def test_an_undo_is_cancelled_by_its_id_and_nothing_has_changed(harness: FreeholdHarness) -> None:
    with hold_undo(harness.home) as held, connect(harness, "read", "history") as home:
        newest = home.history.log(limit=1)[0].id
        undo = Undo(harness, "mine")
        held.wait()
        assert home.history.cancel_restore("another") == "not-found"
        assert home.history.cancel_restore("mine") == "cancelled"
        assert [each.cancellable for each in home.history.restores()] == [False]
        held.release()
        undo.join()
        assert undo.error is not None
        assert (undo.error.code, undo.error.message) == (
            "history.cancelled",
            "The undo was cancelled. Nothing was changed",
        )
        assert home.history.log(limit=1)[0].id == newest
        assert home.history.cancel_restore("mine") == "not-found"
    assert large_file(harness).read_text() == "new"


def test_one_of_two_undos_is_cancelled_while_it_waits_for_the_other(harness: FreeholdHarness) -> None:
    with hold_undo(harness.home) as held, connect(harness, "read", "history") as home:
        first = Undo(harness, "first")
        held.wait()
        second = Undo(harness, "second")
        wait_until(lambda: len(home.history.restores()) == 2)
        assert [each.phase for each in home.history.restores()] == ["preparing", "waiting"]
        assert home.history.cancel_restore("second") == "cancelled"
        second.join()
        assert second.error is not None
        assert second.error.code == "history.cancelled"
        assert [(each.id, each.cancellable) for each in home.history.restores()] == [("first", True)]
        held.release()
        first.join()
        assert first.outcome.unsettled == ()


def test_reading_is_not_enough_to_cancel(harness: FreeholdHarness) -> None:
    with connect(harness, "read", "files") as home, pytest.raises(FreeholdError) as refused:
        home.history.cancel_restore("mine")
    assert refused.value.code == "identity.wrong-scope"


@pytest.mark.parametrize("wrong", ["", "a b", "../up", "x" * 65])
def test_an_id_of_another_form_is_refused(harness: FreeholdHarness, wrong: str) -> None:
    with connect(harness, "history") as home, pytest.raises(FreeholdError) as refused:
        home.history.undo(restore_id=wrong)
    assert refused.value.code == "request.invalid"


def test_ctrl_c_of_a_command_cancels_its_own_undo_only(harness: FreeholdHarness) -> None:
    with hold_undo(harness.home) as held, connect(harness, "read") as home:
        first = Undo(harness, "first")
        held.wait()
        command = harness.start("undo")
        wait_until(lambda: len(home.history.restores()) == 2)
        command.send_signal(signal.SIGINT)
        _, said = command.communicate(timeout=DEADLINE)
        assert command.returncode == 1, said
        assert "The undo was cancelled. Nothing was changed" in said
        assert [(each.id, each.cancellable) for each in home.history.restores()] == [("first", True)]
        held.release()
        first.join()
        assert first.outcome.unsettled == ()
