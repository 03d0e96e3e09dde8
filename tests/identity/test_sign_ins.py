import asyncio
import hashlib
import multiprocessing
import os
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from freehold.errors import FreeholdError
from freehold.identity.sessions import ABSOLUTE, IDLE, MAX_SESSIONS, Session, Sessions

OWNER = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
STRANGER = "did:plc:z72i7hdynmk6r22z27h6tvur"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault" / "identity.db"


@pytest.fixture
def sessions(path: Path, clock: Clock) -> Sessions:
    return Sessions(path, owner=OWNER, clock=clock)


def create(sessions: Sessions, did: str | None = OWNER) -> tuple[Session, str]:
    return sessions.create(did, label="Firefox", address="192.0.2.1", method="atproto")


def test_the_secret_is_on_no_disk(sessions: Sessions, path: Path) -> None:
    session, secret = create(sessions)
    sessions.verify(secret)
    written = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert secret.encode() not in written
    assert hashlib.sha256(secret.encode()).digest() in written
    assert len(secret) >= 43
    assert secret not in repr(session)


def test_files_are_for_their_owner_alone(sessions: Sessions, path: Path) -> None:
    create(sessions)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    Sessions(path).close()
    path.chmod(0o644)
    Sessions(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_planted_link_is_refused(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FreeholdError, match=r"identity\.not-ours"):
        Sessions(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_broken_file_is_explained(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(FreeholdError, match=r"identity\.database"):
        Sessions(path)


@given(st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_no_guess_is_a_session(sessions: Sessions, guess: str) -> None:
    create(sessions)
    assert sessions.verify(guess) is None


def test_idle_and_absolute_limits(sessions: Sessions, clock: Clock) -> None:
    _, idle = create(sessions)
    clock.now += IDLE - 1
    _, used = create(sessions)
    assert sessions.verify(idle) is not None  # and that was a use
    clock.now += IDLE
    assert sessions.verify(idle) is None
    assert sessions.verify(used) is None
    begin = clock.now
    _, busy = create(sessions)
    while clock.now - begin + IDLE / 2 < ABSOLUTE:
        clock.now += IDLE / 2
        assert sessions.verify(busy) is not None
    clock.now = begin + ABSOLUTE
    assert sessions.verify(busy) is None
    assert sessions.list() == []


def test_use_is_written_at_most_once_a_minute(sessions: Sessions, path: Path, clock: Clock) -> None:
    session, secret = create(sessions)
    with Sessions(path, owner=OWNER, clock=clock) as other:
        for seconds, expected in ((59, 0), (2, 61), (58, 61), (3, 122)):
            clock.now += seconds
            sessions.verify(secret)
            assert other.list()[0].seen - session.created == expected


def test_a_session_of_another_owner_is_nobodys(path: Path) -> None:
    """After `did` in freehold.toml was changed, whoever was signed in is not; nor is a browser that came by the link."""
    with Sessions(path, owner=STRANGER) as before:
        _, theirs = create(before, STRANGER)
    with Sessions(path) as laptop:
        linked = laptop.redeem_link(laptop.create_link(), label="", address="")
        assert linked is not None
        assert laptop.verify(linked[1]) is not None
        assert laptop.verify(theirs) is None
    with Sessions(path, owner=OWNER) as now:
        assert now.verify(theirs) is None
        assert now.verify(linked[1]) is None
        assert not now.alive(linked[0].id)
        assert now.list() == []


def test_revoking_one_leaves_the_other(sessions: Sessions) -> None:
    (one, first), (_, second) = create(sessions), create(sessions)
    before = sessions.revision()
    assert sessions.revoke(one.id)
    assert not sessions.revoke(one.id)
    assert sessions.verify(first) is None
    assert sessions.verify(second) is not None
    assert sessions.revision() == before + 1


def test_signing_out_everywhere_takes_links_and_half_done_sign_ins_along(path: Path, clock: Clock) -> None:
    with Sessions(path, clock=clock) as sessions:
        here, kept = create(sessions, None)
        _, gone = create(sessions, None)
        link = sessions.create_link()
        assert sessions.revoke_all(except_id=here.id) == 1
        assert sessions.verify(kept) is not None
        assert sessions.verify(gone) is None
        assert sessions.redeem_link(link, label="", address="") is None
        assert sessions.revoke_all() == 1
        assert sessions.verify(kept) is None


def test_signing_in_again_ends_the_session_that_was_there(sessions: Sessions) -> None:
    """Checklist 25: a cookie planted before sign-in is worth nothing after it."""
    old, planted = create(sessions)
    new, secret = sessions.create(OWNER, label="", address="", method="atproto", replaces=planted)
    assert new.id != old.id
    assert sessions.verify(planted) is None
    assert sessions.verify(secret) == new


def test_rotation_keeps_the_absolute_limit(sessions: Sessions, clock: Clock) -> None:
    session, secret = create(sessions)
    clock.now += 100
    rotated = sessions.rotate(secret)
    assert rotated is not None
    assert rotated[0].id != session.id
    assert rotated[0].expires == session.expires
    assert sessions.verify(secret) is None
    assert sessions.verify(rotated[1]) == rotated[0]
    assert sessions.rotate(secret) is None


def test_the_number_of_sessions_is_bounded(sessions: Sessions, clock: Clock) -> None:
    made = []
    for _ in range(MAX_SESSIONS + 3):
        clock.now += 1
        made.append(create(sessions)[1])
    assert len(sessions.list()) == MAX_SESSIONS
    assert [sessions.verify(secret) is None for secret in made[:4]] == [True, True, True, False]


def test_labels_cannot_speak_to_a_terminal(sessions: Sessions) -> None:
    session, _ = sessions.create(OWNER, label="\x1b]0;owned\x07\r\n" + "x" * 500, address="\x9b31m", method="atproto")
    assert session.label.isprintable()
    assert session.address.isprintable()
    assert len(session.label) == 120


def test_a_revocation_in_another_process_holds_at_the_next_call(sessions: Sessions, path: Path) -> None:
    session, secret = create(sessions)
    assert sessions.verify(secret) is not None  # now cached
    script = "import sys, pathlib; from freehold.identity.sessions import Sessions; s = Sessions(pathlib.Path(sys.argv[1])); assert s.revoke(sys.argv[2])"
    subprocess.run([sys.executable, "-c", script, str(path), session.id], check=True)
    assert sessions.verify(secret) is None
    assert not sessions.alive(session.id)


async def test_watchers_hear_of_a_revocation_elsewhere(sessions: Sessions, path: Path) -> None:
    session, _ = create(sessions)

    async def hear() -> int:
        return await anext(aiter(sessions.watch_revocations(interval=0.02)))

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(hear())
        await asyncio.sleep(0)
        with Sessions(path, owner=OWNER) as other:
            await asyncio.to_thread(other.revoke, session.id)
    assert not sessions.alive(session.id)


def test_keeper_and_gateway_need_nothing_heavy() -> None:
    """The keeper must know the owner with everything else broken: only the standard library is imported."""
    script = "import sys; before = set(sys.modules); import freehold.identity.sessions; print(*{n.split('.')[0] for n in set(sys.modules) - before})"
    found = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert set(found) - set(sys.stdlib_module_names) == {"freehold"}


# One-time links


@pytest.fixture
def laptop(path: Path, clock: Clock) -> Sessions:
    return Sessions(path, clock=clock)


def redeem(sessions: Sessions, token: str, purpose: str = "browser") -> str | None:
    made = sessions.redeem_link(token, label="", address="", purpose=purpose)  # type: ignore[arg-type]
    return made[1] if made else None


def test_a_link_works_once(laptop: Sessions) -> None:
    link = laptop.create_link()
    secret = redeem(laptop, link)
    assert secret is not None
    assert laptop.verify(secret) is not None
    assert redeem(laptop, link) is None


def test_a_link_lives_ten_minutes(laptop: Sessions, clock: Clock) -> None:
    first, second = laptop.create_link(), laptop.create_link()
    clock.now += 599
    assert redeem(laptop, first) is not None
    clock.now += 1
    assert redeem(laptop, second) is None


def test_a_link_from_the_future_is_refused(laptop: Sessions, clock: Clock) -> None:
    """A clock that was set back must not make a link live longer."""
    link = laptop.create_link()
    clock.now -= 3600
    assert redeem(laptop, link) is None


def test_links_are_bounded_and_the_oldest_goes(laptop: Sessions, clock: Clock) -> None:
    links = []
    for _ in range(20):
        clock.now += 1
        links.append(laptop.create_link())
    assert [redeem(laptop, link) is not None for link in links] == [False] * 4 + [True] * 16


def test_a_link_is_for_its_purpose(laptop: Sessions) -> None:
    assert redeem(laptop, laptop.create_link("browser"), "keeper") is None
    assert redeem(laptop, laptop.create_link("keeper"), "browser") is None


def test_with_an_owner_there_is_no_link(sessions: Sessions, path: Path) -> None:
    """Neither a new one nor one that was made before the owner was set."""
    with Sessions(path) as before:
        early = before.create_link()
    assert redeem(sessions, early) is None
    with pytest.raises(FreeholdError, match=r"identity\.link-not-allowed"):
        sessions.create_link()


def test_a_recovery_code_can_be_typed_and_opens_the_recovery_page_alone(sessions: Sessions) -> None:
    code = sessions.create_link("keeper")
    assert len(code) == 23
    secret = redeem(sessions, f" {code.lower().replace('-', ' ')} ", "keeper")
    assert secret is not None
    assert sessions.verify(secret) is None
    found = sessions.verify(secret, recovery=True)
    assert found is not None
    assert found.method == "recovery"
    assert redeem(sessions, code, "keeper") is None


def _race(path: Path, token: str, gate: int, results: int) -> None:
    with Sessions(path) as sessions:
        os.write(results, b"r")
        os.read(gate, 1)
        won = sessions.redeem_link(token, label="", address="") is not None
        os.write(results, b"w" if won else b"l")


def test_of_many_processes_one_gets_the_link(path: Path) -> None:
    with Sessions(path) as sessions:
        token = sessions.create_link()
    context = multiprocessing.get_context("fork")
    gate_read, gate_write = os.pipe()
    results_read, results_write = os.pipe()
    racers = [context.Process(target=_race, args=(path, token, gate_read, results_write)) for _ in range(8)]
    for racer in racers:
        racer.start()
    ready = b""
    while len(ready) < len(racers):
        ready += os.read(results_read, 8)
    os.write(gate_write, b"g" * len(racers))
    for racer in racers:
        racer.join()
    outcome = os.read(results_read, 100)
    for descriptor in (gate_read, gate_write, results_read, results_write):
        os.close(descriptor)
    assert sorted(outcome) == sorted(b"w" + b"l" * (len(racers) - 1))


def test_threads_share_one_object(sessions: Sessions) -> None:
    def visit(_: int) -> bool:
        session, secret = create(sessions)
        alive = sessions.verify(secret) is not None
        sessions.revoke(session.id)
        return alive and sessions.verify(secret) is None

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(visit, range(40)))


class SessionsAgainstAModel(RuleBasedStateMachine):
    """Two processes' worth of objects on one file, against a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        path = Path(self.folder.name) / "vault" / "identity.db"
        self.doors = [Sessions(path, owner=OWNER, idle=1000, absolute=5000, clock=self.clock) for _ in range(2)]
        self.living: dict[str, tuple[str, float, float]] = {}
        self.dead: set[str] = set()

    def teardown(self) -> None:
        for door in self.doors:
            door.close()
        self.folder.cleanup()

    @rule(door=st.integers(0, 1))
    def sign_in(self, door: int) -> None:
        session, secret = create(self.doors[door])
        self.living[secret] = (session.id, self.clock.now, self.clock.now)

    @rule(door=st.integers(0, 1), data=st.data())
    def revoke(self, door: int, data: st.DataObject) -> None:
        if self.living:
            secret = data.draw(st.sampled_from(sorted(self.living)))
            self.doors[door].revoke(self.living.pop(secret)[0])
            self.dead.add(secret)

    @rule(door=st.integers(0, 1))
    def revoke_all(self, door: int) -> None:
        self.doors[door].revoke_all()
        self.dead |= self.living.keys()
        self.living.clear()

    @rule(seconds=st.sampled_from([0, 61, 400, 999, 1000, 3000]))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds
        for secret, (_, created, seen) in list(self.living.items()):
            if self.clock.now - created >= 5000 or self.clock.now - seen >= 1000:
                del self.living[secret]
                self.dead.add(secret)

    @invariant()
    def both_doors_agree_with_the_model(self) -> None:
        for door in self.doors:
            for secret, (identifier, created, seen) in list(self.living.items()):
                session = door.verify(secret)
                assert session is not None
                assert session.id == identifier
                if self.clock.now - seen >= 60:
                    self.living[secret] = (identifier, created, self.clock.now)
            assert all(door.verify(secret) is None for secret in self.dead)
            assert {session.id for session in door.list()} == {entry[0] for entry in self.living.values()}


TestSessionsAgainstAModel = SessionsAgainstAModel.TestCase
TestSessionsAgainstAModel.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
