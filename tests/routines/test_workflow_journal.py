"""Both journals of workflows do the same: in the file of the timeline, and in a PostgreSQL database of the owner."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.routines.conftest import SetClock
from tests.support.postgres import PostgresServer, running_postgres

from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret
from freehold.routines.workflows.journal import Journal, TimelineJournal
from freehold.routines.workflows.messages import MAX_RESULT, StepAsked
from freehold.routines.workflows.postgres_journal import PostgresJournal
from freehold.routines.workflows.records import WorkflowStep
from freehold.routines.workflows.step_store import StepEnd
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore
from freehold.slots import postgres_connections
from freehold.timeline import Timeline

pytestmark = pytest.mark.shared_processes
NO_RETRY = {"retries": 0, "delay": 1.0, "again": False}
ASK = StepAsked("2", "ask", "Go on?", {"question": "Go on?", "choices": ["yes", "no"]})


def function(place: str, **given: Any) -> StepAsked:
    return StepAsked(place, "step", "work", {"function": "work", "arguments": [], **NO_RETRY, **given})


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class JournalBench:
    """A home whose journal can be opened again, as after a restart."""

    def __init__(self, timeline: Timeline, make: Callable[[Timeline], Journal], stack: ExitStack) -> None:
        self.timeline = timeline
        self._make = make
        self._stack = stack
        self.clock = SetClock()

    def open(self) -> WorkflowStore:
        journal = self._make(self.timeline)
        self._stack.callback(journal.close)
        journal.prepare()
        return WorkflowStore(journal, self.clock)

    def told(self) -> list[str]:
        return [event.kind for event in self.timeline.read(kinds=["workflow.*"])]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def make_postgres(postgres: PostgresServer, schema: str) -> Callable[[Timeline], Journal]:
    def find_secret(name: str) -> Secret:
        raise AssertionError(name)

    settings = {"url": postgres.url, "schema": schema}
    return lambda timeline: PostgresJournal(timeline, settings, find_secret, {})


@pytest.fixture(params=["timeline", "postgres"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, stack: ExitStack) -> JournalBench:
    timeline = stack.enter_context(Timeline(tmp_path / "timeline.db"))
    if request.param == "timeline":
        return JournalBench(timeline, TimelineJournal, stack)
    postgres: PostgresServer = request.getfixturevalue("postgres")
    return JournalBench(timeline, make_postgres(postgres, f"w{secrets.token_hex(6)}"), stack)


@pytest.fixture
def away(postgres: PostgresServer, tmp_path: Path, stack: ExitStack) -> JournalBench:
    """A journal in the database, which the test stops or hangs."""
    timeline = stack.enter_context(Timeline(tmp_path / "timeline.db"))
    return JournalBench(timeline, make_postgres(postgres, f"w{secrets.token_hex(6)}"), stack)


def begin(store: WorkflowStore, holder: str = "first") -> str:
    id = store.add(WorkflowOrder("w.py", {"week": 12}, budget=0.1), who="owner").id
    assert store.claim(id, "text", holder) is not None
    return id


def begin_function(store: WorkflowStore, id: str, place: str = "1", **given: Any) -> WorkflowStep:
    step, begins = store.steps.begin_step(id, function(place, **given), 10, "first")
    assert begins
    return step


def test_what_is_stored_is_read_as_it_was(bench: JournalBench) -> None:
    store = bench.open()
    made = store.add(WorkflowOrder("flows/ü.py", {"text": "a'b\0\u202e", "n": 1.1}, budget=0.1), who="owner")
    assert made == store.get(made.id)
    assert made == store.list_workflows()[0]
    assert (made.data, made.budget) == ({"text": "a'b\0\u202e", "n": 1.1}, 0.1)
    assert (made.created, made.pinned) == (bench.clock.now(), False)
    assert bench.open().get(made.id) == made
    pinned = store.add(WorkflowOrder("b.py", {}, digest="0" * 64), who="owner")
    assert pinned.pinned is True
    assert [one.id for one in store.list_workflows(before=pinned.number)] == [made.id]
    assert store.count_states() == {"due": 2}


def test_a_workflow_with_a_known_id_is_added_once(bench: JournalBench) -> None:
    store = bench.open()
    for _ in range(2):
        store.add(WorkflowOrder("w.py", {}), who="routine:night", id="run-1")
    assert len(store.list_workflows()) == 1
    assert bench.told() == ["workflow.added"]


def test_a_result_that_is_too_long_fails_its_step(bench: JournalBench) -> None:
    """Otherwise the step would be tried to be ended for ever, such as with the answer of an agent or a large event."""
    store = bench.open()
    id = begin(store)
    ended = store.steps.end_step(begin_function(store, id), StepEnd("ü" * (MAX_RESULT // 6 + 1), cost=0.5))
    assert ended is not None
    assert (ended.state, ended.result, ended.cost) == ("failed", None, 0.5)
    assert "262144 is the most" in str(ended.error)
    fits = store.steps.end_step(begin_function(store, id, "2"), StepEnd("ü" * (MAX_RESULT // 6 - 1)))
    assert fits is not None
    assert fits.state == "done"


def test_a_sleep_begins_anew_when_the_clock_was_set_back_to_before_it(bench: JournalBench) -> None:
    store = bench.open()
    id = begin(store)
    store.steps.begin_step(id, StepAsked("1", "sleep", "60 s", {"seconds": 60.0}), 10, "first")
    bench.clock.forward(1)
    store.steps.plan_again()
    assert store.steps.find_next_wake() == bench.clock.now() + 59
    bench.clock.forward(-86400)
    for _ in range(2):
        store.steps.plan_again()
        assert store.steps.find_next_wake() == bench.clock.now() + 60


def test_each_step_is_stored_with_its_event_and_found_again(bench: JournalBench) -> None:
    store = bench.open()
    id = begin(store)
    step = begin_function(store, id)
    ended = store.steps.end_step(step, StepEnd({"files": [1, None, "ü"]}, cost=0.25, entry=7))
    assert ended is not None
    question, begins = store.steps.begin_step(id, ASK, 10, "first")
    assert (question.state, begins) == ("waiting", True)
    assert store.suspend(id, ["2"])
    assert [one.state for one in bench.open().steps.list_steps(id)] == ["done", "waiting"]
    assert [one.place for one in store.steps.list_at(id, ["1", "2", "9"])] == ["1", "2"]
    assert store.steps.list_at(id, []) == []
    store.steps.answer(id, "2", "yes", who="owner")
    assert store.list_due() == [id]
    assert store.claim(id, "text", "second") is not None
    found, begins = store.steps.begin_step(id, function("1"), 10, "second")
    assert (found.result, begins) == ({"files": [1, None, "ü"]}, False)
    assert store.sum_cost(id) == 0.25
    assert store.end(id, "done", result=[1], output="printed\0")
    assert store.get(id).cost == 0.25
    assert bench.told() == [
        "workflow.added",
        "workflow.started",
        "workflow.step_done",
        "workflow.asked",
        "workflow.step_done",
        "workflow.done",
    ]


def test_a_question_is_told_with_its_words_and_answered_by_its_number(bench: JournalBench) -> None:
    """A number is of one time that it was asked: after a retry another question stands at the same place."""
    store = bench.open()
    id = begin(store)
    first, _ = store.steps.begin_step(id, ASK, 10, "first")
    store.cancel(id, who="owner", reason="again")
    store.retry(id, who="owner")
    assert store.claim(id, "text", "first") is not None
    second, _ = store.steps.begin_step(id, ASK, 10, "first")
    asked = [one.data for one in bench.timeline.read(kinds=("workflow.asked",))]
    assert [one["number"] for one in asked] == [first.number, second.number]
    words = {"question": ASK.given["question"], "choices": ASK.given["choices"], "digest": second.digest}
    assert asked[1] == {"workflow": id, "step": ASK.place, "number": second.number, **words}
    with pytest.raises(FreeholdError, match="waits for no answer"):
        store.steps.answer(id, ASK.place, "yes", who="owner", number=first.number)
    assert store.steps.answer(id, ASK.place, "yes", who="owner", number=second.number).result == "yes"


def test_what_is_refused_changes_nothing_and_tells_nothing(bench: JournalBench) -> None:
    store = bench.open()
    id = begin(store)
    begin_function(store, id)
    before = (store.get(id), store.steps.list_steps(id), bench.told())
    for refused in (
        lambda: store.steps.begin_step(id, function("1", again=True), 10, "first"),
        lambda: store.steps.begin_step(id, function("2"), 1, "first"),
        lambda: store.steps.begin_step(id, function("2"), 10, "somebody else"),
        lambda: store.steps.answer(id, "1", "yes", who="owner"),
        lambda: store.retry(id, who="owner"),
        lambda: store.get("none"),
        lambda: store.steps.get_step(id, "9"),
    ):
        with pytest.raises(FreeholdError):
            refused()
    assert (store.get(id), store.steps.list_steps(id), bench.told()) == before


def test_who_asks_again_because_the_answer_was_lost_gets_the_same_answer(bench: JournalBench) -> None:
    """The commit was stored, and the connection broke before anybody heard of it."""
    store = bench.open()
    id = begin(store)
    assert store.claim(id, "text", "first") == store.get(id)
    assert store.claim(id, "text", "another") is None
    step = begin_function(store, id, retries=3)
    assert store.steps.begin_step(id, function("1", retries=3), 10, "first") == (step, True)
    for _ in range(2):
        store.steps.end_step(step, StepEnd(error="no"))
    assert store.steps.get_step(id, "1").attempt == 2
    bench.clock.set(bench.clock.now() + 60)
    store.steps.wake_due()
    again, begins = store.steps.begin_step(id, function("1", retries=3), 10, "first")
    assert (again.attempt, begins) == (2, True)
    assert store.steps.begin_step(id, function("1", retries=3), 10, "first") == (again, True)
    assert bench.told().count("workflow.step_retried") == 1


def test_after_a_restart_what_was_cut_off_is_uncertain_or_begins_again(bench: JournalBench) -> None:
    store = bench.open()
    lost, repeated = begin(store), begin(store)
    begin_function(store, lost)
    begin_function(store, repeated, again=True)
    store = bench.open()
    assert store.steps.recover() == []
    assert store.get(lost).state == "uncertain"
    assert (store.get(repeated).state, store.steps.list_steps(repeated)) == ("due", [])
    with pytest.raises(FreeholdError, match="does not work any more"):
        store.steps.begin_step(lost, function("1"), 10, "first")


def test_a_retry_forgets_steps_and_keeps_what_they_have_cost(bench: JournalBench) -> None:
    store = bench.open()
    id = begin(store)
    for place in ("1", "2"):
        store.steps.end_step(begin_function(store, id, place), StepEnd("x" * 50, cost=0.5))
    store.end(id, "failed", error="broken")
    store.retry(id, "2", who="owner")
    assert [step.place for step in store.steps.list_steps(id)] == ["1"]
    assert store.sum_cost(id) == 1.0
    store.cancel(id, who="owner", reason="enough")
    assert store.get(id).cost == 1.0


def test_a_retry_forgets_what_has_no_result_and_keeps_what_is_beside_it(bench: JournalBench) -> None:
    """In a gather of five: two fail, one fails and is caught, one has a result, and one is cut off."""
    store = bench.open()
    id = begin(store)
    ends = {
        "1": StepEnd(error="caught"),
        "2.1.1": StepEnd(error="broken"),
        "2.2.1": StepEnd("done"),
        "2.3.1": StepEnd(error="caught"),
        "2.3.2": StepEnd("went on"),
        "2.4.1.2.1": StepEnd(error="broken too"),
        "2.4.1.1.1": StepEnd("done"),
    }
    steps = {place: begin_function(store, id, place) for place in (*ends, "2.5.1")}
    for place, end in ends.items():
        store.steps.end_step(steps[place], end)
    store.end(id, "failed", error="broken")
    store.retry(id, who="owner")
    assert {step.place for step in store.steps.list_steps(id)} == ends.keys() - {"2.1.1", "2.4.1.2.1"}
    (told,) = [event.data for event in bench.timeline.read(kinds=["workflow.retried"])]
    assert told["step"] == "2.1.1"


def test_sleeps_end_at_their_time_and_signals_wait_for_their_step(bench: JournalBench) -> None:
    store = bench.open()
    id = begin(store)
    store.steps.signal(id, "org.example.paid", {"order": 7}, who="owner")
    store.steps.begin_step(id, StepAsked("1", "sleep", "a day", {"seconds": 86400.0}), 10, "first")
    event, _ = store.steps.begin_step(id, StepAsked("2", "event", "paid", {"name": "org.example.*"}), 10, "first")
    assert (event.state, event.result) == ("done", {"order": 7})
    assert store.steps.find_next_wake() == bench.clock.now() + 86400
    assert store.suspend(id, ["1"])
    bench.clock.set(bench.clock.now() + 86400 + 120)
    assert store.steps.find_overdue() == id
    store.steps.wake_due()
    assert store.list_due() == [id]


def test_writers_at_the_same_time_lose_nothing_and_are_told_in_one_order(bench: JournalBench) -> None:
    stores = [bench.open() for _ in range(3)]

    def write(store: WorkflowStore) -> None:
        for _ in range(8):
            store.add(WorkflowOrder("w.py", {}), who="owner")

    threads = [Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = {one.id: one.number for one in stores[0].list_workflows(limit=100)}
    told = [str(event.data["workflow"]) for event in bench.timeline.read(kinds=["workflow.*"])]
    assert len(numbers) == len(told) == 24
    assert [numbers[id] for id in told] == sorted(numbers.values())


def test_a_database_that_is_gone_is_said_plainly_and_the_journal_goes_on_when_it_is_back(
    away: JournalBench, postgres: PostgresServer
) -> None:
    store = away.open()
    id = begin(store)
    postgres.kill()
    try:
        for act in (lambda: store.get(id), lambda: begin_function(store, id)):
            with pytest.raises(
                FreeholdError, match="The workflows are in PostgreSQL, which cannot be reached"
            ) as found:
                act()
            assert found.value.code == "workflows.unavailable"
            assert found.value.kind.status == 503
    finally:
        postgres.start()
    begin_function(store, id)
    assert [step.state for step in store.steps.list_steps(id)] == ["begun"]


def test_a_database_that_answers_nothing_is_given_up(
    away: JournalBench, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = away.open()
    monkeypatch.setattr(postgres_connections, "CALL_TIMEOUT", 0.3)
    postgres.hang()
    try:
        with pytest.raises(FreeholdError, match="did not answer within"):
            store.list_workflows()
    finally:
        postgres.resume()
    monkeypatch.undo()
    assert store.list_workflows() == []


def test_events_of_a_process_that_was_killed_before_it_told_them_are_told_once(away: JournalBench) -> None:
    store, journal = away.open(), away.open().journal
    assert isinstance(journal, PostgresJournal)
    for name in ("one", "two"):
        with journal.commit() as tx:  # as the process is killed right after it
            tx.append("workflow.signalled", {"workflow": "w", "name": name})
    assert away.told() == []
    store.add(WorkflowOrder("w.py", {}), who="owner")
    assert away.told() == ["workflow.signalled", "workflow.signalled", "workflow.added"]
    for _ in range(2):
        journal.relay()
        store.journal.relay()
    assert len(away.told()) == 3


def test_a_schema_that_has_the_workflows_of_another_freehold_is_refused(
    away: JournalBench, tmp_path: Path, stack: ExitStack
) -> None:
    begin(away.open())
    other = JournalBench(stack.enter_context(Timeline(tmp_path / "other.db")), away._make, stack)
    with pytest.raises(FreeholdError, match="has the workflows of another Freehold") as found:
        other.open()
    assert found.value.code == "workflows.other-freehold"
    assert len(away.open().list_workflows()) == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": "mysql://x/y"}, "workflows.postgres.url is not an address of a PostgreSQL database"),
        ({"uri": "postgresql://x/y"}, "workflows.postgres has no uri"),
        ({"password": "secret:none"}, "workflows.postgres.url is missing"),
        ({"url": "postgresql://x/y", "schema": "a b"}, "workflows.postgres.schema is not a plain name"),
        ({"url": "postgresql://x/y", "password": "hunter2"}, "workflows.postgres.password is not a reference"),
    ],
)
def test_settings_that_cannot_be_used_are_said_by_their_place_in_the_manifest(
    tmp_path: Path, stack: ExitStack, settings: dict[str, str], words: str
) -> None:
    def find_secret(name: str) -> Secret:
        raise AssertionError(name)

    timeline = stack.enter_context(Timeline(tmp_path / "timeline.db"))
    journal = PostgresJournal(timeline, settings, find_secret, {})
    stack.callback(journal.close)
    with pytest.raises(FreeholdError, match=words) as found:
        journal.prepare()
    assert found.value.code == "workflows.unavailable"
    assert "hunter2" not in str(found.value)
