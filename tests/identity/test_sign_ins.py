import contextlib
import hashlib
import multiprocessing
import os
import sqlite3
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
from freehold.identity.sign_ins import (
    ABSOLUTE_SECONDS,
    HANDOVER_TTL,
    IDLE_SECONDS,
    MAX_SIGN_INS,
    SignIn,
    SignIns,
    split_secret,
)
from freehold.identity.tokens import ApiTokens

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
def sign_ins(path: Path, clock: Clock) -> SignIns:
    return SignIns(path, owner=OWNER, clock=clock)


def create(sign_ins: SignIns, did: str | None = OWNER) -> tuple[SignIn, str]:
    return sign_ins.create(did, label="Firefox", address="192.0.2.1", method="atproto")


def test_the_secret_is_on_no_disk(sign_ins: SignIns, path: Path) -> None:
    sign_in, secret = create(sign_ins)
    sign_ins.verify(secret)
    written = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert secret.encode() not in written
    assert hashlib.sha256(secret.encode()).digest() in written
    assert len(secret) >= 43
    assert secret not in repr(sign_in)


def test_only_their_owner_can_read_the_files(sign_ins: SignIns, path: Path) -> None:
    create(sign_ins)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


def test_a_readable_file_is_made_private(path: Path) -> None:
    SignIns(path).close()
    path.chmod(0o644)
    SignIns(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_planted_link_is_refused(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FreeholdError, match=r"identity\.not-ours"):
        SignIns(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_broken_file_is_explained(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(FreeholdError, match=r"identity\.database"):
        SignIns(path)


@given(st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_a_guessed_secret_finds_nothing(sign_ins: SignIns, guess: str) -> None:
    create(sign_ins)
    assert sign_ins.verify(guess) is None


def test_idle_and_absolute_limits(sign_ins: SignIns, clock: Clock) -> None:
    _, idle = create(sign_ins)
    clock.now += IDLE_SECONDS - 1
    _, used = create(sign_ins)
    assert sign_ins.verify(idle) is not None  # and that was a use
    clock.now += IDLE_SECONDS
    assert sign_ins.verify(idle) is None
    assert sign_ins.verify(used) is None
    begin = clock.now
    _, busy = create(sign_ins)
    while clock.now - begin + IDLE_SECONDS / 2 < ABSOLUTE_SECONDS:
        clock.now += IDLE_SECONDS / 2
        assert sign_ins.verify(busy) is not None
    clock.now = begin + ABSOLUTE_SECONDS
    assert sign_ins.verify(busy) is None
    assert sign_ins.list() == []


def test_use_is_written_at_most_once_a_minute(sign_ins: SignIns, path: Path, clock: Clock) -> None:
    sign_in, secret = create(sign_ins)
    with SignIns(path, owner=OWNER, clock=clock) as other:
        for seconds, expected in ((59, 0), (2, 61), (58, 61), (3, 122)):
            clock.now += seconds
            sign_ins.verify(secret)
            assert other.list()[0].seen - sign_in.created == expected


def test_a_sign_in_of_another_owner_is_not_valid(path: Path) -> None:
    """After `did` in freehold.toml was changed, sign-ins of the earlier owner and by link are not valid."""
    with SignIns(path, owner=STRANGER) as before:
        _, theirs = create(before, STRANGER)
    with SignIns(path) as laptop:
        linked = laptop.redeem_link(laptop.create_link(), label="", address="")
        assert linked is not None
        assert laptop.verify(linked[1]) is not None
        assert laptop.verify(theirs) is None
    with SignIns(path, owner=OWNER) as now:
        assert now.verify(theirs) is None
        assert now.verify(linked[1]) is None
        assert not now.is_active(linked[0].id)
        assert now.list() == []


def test_revoking_one_leaves_the_other(sign_ins: SignIns) -> None:
    (one, first), (_, second) = create(sign_ins), create(sign_ins)
    before = sign_ins.revocation_count()
    assert sign_ins.revoke(one.id)
    assert not sign_ins.revoke(one.id)
    assert sign_ins.verify(first) is None
    assert sign_ins.verify(second) is not None
    assert sign_ins.revocation_count() == before + 1


def test_signing_out_everywhere_also_ends_unused_links(path: Path, clock: Clock) -> None:
    with SignIns(path, clock=clock) as sign_ins:
        here, kept = create(sign_ins, None)
        _, gone = create(sign_ins, None)
        link = sign_ins.create_link()
        assert sign_ins.revoke_all(except_id=here.id) == 1
        assert sign_ins.verify(kept) is not None
        assert sign_ins.verify(gone) is None
        assert sign_ins.redeem_link(link, label="", address="") is None
        assert sign_ins.revoke_all() == 1
        assert sign_ins.verify(kept) is None


def test_signing_in_again_ends_the_earlier_sign_in(sign_ins: SignIns) -> None:
    """Checklist 25: a key that an attacker planted before the sign-in is not valid after it."""
    old, planted = create(sign_ins)
    new, secret = sign_ins.create(OWNER, label="", address="", method="atproto", replaces=old.id)
    assert new.id != old.id
    assert sign_ins.verify(planted) is None
    assert sign_ins.verify(secret) == new


def test_the_number_of_sign_ins_is_bounded(sign_ins: SignIns, clock: Clock) -> None:
    made = []
    for _ in range(MAX_SIGN_INS + 3):
        clock.now += 1
        made.append(create(sign_ins)[1])
    assert len(sign_ins.list()) == MAX_SIGN_INS
    assert [sign_ins.verify(secret) is None for secret in made[:4]] == [True, True, True, False]


def test_labels_have_no_control_characters(sign_ins: SignIns) -> None:
    sign_in, _ = sign_ins.create(OWNER, label="\x1b]0;owned\x07\r\n" + "x" * 500, address="\x9b31m", method="atproto")
    assert sign_in.label.isprintable()
    assert sign_in.address.isprintable()
    assert len(sign_in.label) == 120


def test_a_revocation_in_another_process_is_seen_at_the_next_call(sign_ins: SignIns, path: Path) -> None:
    sign_in, secret = create(sign_ins)
    assert sign_ins.verify(secret) is not None  # now cached
    script = "import sys, pathlib; from freehold.identity.sign_ins import SignIns; s = SignIns(pathlib.Path(sys.argv[1])); assert s.revoke(sys.argv[2])"
    subprocess.run([sys.executable, "-c", script, str(path), sign_in.id], check=True)
    assert sign_ins.verify(secret) is None
    assert not sign_ins.is_active(sign_in.id)


def test_sign_ins_import_only_the_standard_library() -> None:
    """The keeper must recognize the owner when everything else is broken."""
    script = "import sys; before = set(sys.modules); import freehold.identity.sign_ins; print(*{n.split('.')[0] for n in set(sys.modules) - before})"
    found = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert set(found) - set(sys.stdlib_module_names) == {"freehold"}


# One-time links


@pytest.fixture
def laptop(path: Path, clock: Clock) -> SignIns:
    return SignIns(path, clock=clock)


def redeem(sign_ins: SignIns, token: str, purpose: str = "browser") -> str | None:
    made = sign_ins.redeem_link(token, label="", address="", purpose=purpose)  # type: ignore[arg-type]
    return made[1] if made else None


def test_a_link_works_once(laptop: SignIns) -> None:
    link = laptop.create_link()
    secret = redeem(laptop, link)
    assert secret is not None
    assert laptop.verify(secret) is not None
    assert redeem(laptop, link) is None


def test_a_link_lives_ten_minutes(laptop: SignIns, clock: Clock) -> None:
    first, second = laptop.create_link(), laptop.create_link()
    clock.now += 599
    assert redeem(laptop, first) is not None
    clock.now += 1
    assert redeem(laptop, second) is None


def test_a_link_from_the_future_is_refused(laptop: SignIns, clock: Clock) -> None:
    """A clock that was set back must not make a link live longer."""
    link = laptop.create_link()
    clock.now -= 3600
    assert redeem(laptop, link) is None


def test_the_number_of_links_is_bounded_and_the_oldest_is_removed(laptop: SignIns, clock: Clock) -> None:
    links = []
    for _ in range(20):
        clock.now += 1
        links.append(laptop.create_link())
    assert [redeem(laptop, link) is not None for link in links] == [False] * 4 + [True] * 16


def test_a_link_works_only_for_its_purpose(laptop: SignIns) -> None:
    assert redeem(laptop, laptop.create_link("browser"), "keeper") is None
    assert redeem(laptop, laptop.create_link("keeper"), "browser") is None


def test_with_an_owner_there_is_no_link(sign_ins: SignIns, path: Path) -> None:
    """Neither a new one nor one that was made before the owner was set."""
    with SignIns(path) as before:
        early = before.create_link()
    assert redeem(sign_ins, early) is None
    with pytest.raises(FreeholdError, match=r"identity\.link-not-allowed"):
        sign_ins.create_link()


def test_a_recovery_code_can_be_typed_and_opens_only_the_recovery_page(sign_ins: SignIns) -> None:
    code = sign_ins.create_link("keeper")
    assert len(code) == 23
    secret = redeem(sign_ins, f" {code.lower().replace('-', ' ')} ", "keeper")
    assert secret is not None
    assert sign_ins.verify(secret) is None
    found = sign_ins.verify(secret, recovery=True)
    assert found is not None
    assert found.method == "recovery"
    assert redeem(sign_ins, code, "keeper") is None


def _race(path: Path, token: str, gate: int, results: int) -> None:
    with SignIns(path) as sign_ins:
        os.write(results, b"r")
        os.read(gate, 1)
        won = sign_ins.redeem_link(token, label="", address="") is not None
        os.write(results, b"w" if won else b"l")


def test_of_many_processes_one_gets_the_link(path: Path) -> None:
    with SignIns(path) as sign_ins:
        token = sign_ins.create_link()
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


def test_threads_can_share_one_object(sign_ins: SignIns) -> None:
    def sign_in_and_out(_: int) -> bool:
        sign_in, secret = create(sign_ins)
        alive = sign_ins.verify(secret) is not None
        sign_ins.revoke(sign_in.id)
        return alive and sign_ins.verify(secret) is None

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(sign_in_and_out, range(40)))


class SignInsAgainstAModel(RuleBasedStateMachine):
    """Two objects on one file, compared with a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        path = Path(self.folder.name) / "vault" / "identity.db"
        self.objects = [SignIns(path, owner=OWNER, idle=1000, absolute=5000, clock=self.clock) for _ in range(2)]
        self.active: dict[str, tuple[str, float, float]] = {}
        self.ended: set[str] = set()

    def teardown(self) -> None:
        for one in self.objects:
            one.close()
        self.folder.cleanup()

    @rule(index=st.integers(0, 1))
    def sign_in(self, index: int) -> None:
        sign_in, secret = create(self.objects[index])
        self.active[secret] = (sign_in.id, self.clock.now, self.clock.now)

    @rule(index=st.integers(0, 1), data=st.data())
    def revoke(self, index: int, data: st.DataObject) -> None:
        if self.active:
            secret = data.draw(st.sampled_from(sorted(self.active)))
            self.objects[index].revoke(self.active.pop(secret)[0])
            self.ended.add(secret)

    @rule(index=st.integers(0, 1))
    def revoke_all(self, index: int) -> None:
        self.objects[index].revoke_all()
        self.ended |= self.active.keys()
        self.active.clear()

    @rule(seconds=st.sampled_from([0, 61, 400, 999, 1000, 3000]))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds
        for secret, (_, created, seen) in list(self.active.items()):
            if self.clock.now - created >= 5000 or self.clock.now - seen >= 1000:
                del self.active[secret]
                self.ended.add(secret)

    @invariant()
    def both_objects_agree_with_the_model(self) -> None:
        for one in self.objects:
            for secret, (identifier, created, seen) in list(self.active.items()):
                sign_in = one.verify(secret)
                assert sign_in is not None
                assert sign_in.id == identifier
                if self.clock.now - seen >= 60:
                    self.active[secret] = (identifier, created, self.clock.now)
            assert all(one.verify(secret) is None for secret in self.ended)
            assert {sign_in.id for sign_in in one.list()} == {entry[0] for entry in self.active.values()}


TestSignInsAgainstAModel = SignInsAgainstAModel.TestCase
TestSignInsAgainstAModel.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


def test_a_finished_account_sign_in_is_handed_over_once(sign_ins: SignIns, clock: Clock) -> None:
    token = sign_ins.create_link("atproto", HANDOVER_TTL)
    assert sign_ins.redeem_link(token, label="", address="", purpose="keeper") is None
    made = sign_ins.redeem_link(token, label="", address="", purpose="atproto")
    assert made is not None
    assert (made[0].did, made[0].method) == (OWNER, "atproto")
    assert sign_ins.redeem_link(token, label="", address="", purpose="atproto") is None
    late = sign_ins.create_link("atproto", HANDOVER_TTL)
    clock.now += HANDOVER_TTL + 1
    assert sign_ins.redeem_link(late, label="", address="", purpose="atproto") is None


def test_both_halves_of_a_recovery_secret_are_too_long_to_guess(sign_ins: SignIns) -> None:
    _, secret = sign_ins.create(OWNER, label="", address="", method="recovery")
    halves = split_secret(secret)
    assert "".join(halves) == secret
    assert min(len(half) for half in halves) * 6 >= 120


def test_sign_ins_by_the_cookies_of_version_0_1_end(tmp_path: Path) -> None:
    """Apps behind a forward may have seen them. API tokens stay."""
    path = tmp_path / "identity.db"
    with SignIns(path) as sign_ins, ApiTokens(path) as tokens:
        _, secret = sign_ins.create(None, label="", address="", method="link")
        _, token = tokens.create("script", ["read"], None)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 1")
    database.close()
    with SignIns(path) as sign_ins, ApiTokens(path) as tokens:
        assert sign_ins.verify(secret) is None
        assert sign_ins.list() == []
        assert tokens.verify(token) is not None


def test_a_database_of_a_newer_freehold_is_refused_and_not_changed(tmp_path: Path) -> None:
    """An older version that was started by mistake says so, and lets nobody in."""
    path = tmp_path / "identity.db"
    with ApiTokens(path) as tokens:
        tokens.create("script", ["read"], None)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
        before = list(database.iterdump())
    for opened in (SignIns, ApiTokens):
        with pytest.raises(FreeholdError) as caught, opened(path):
            pass
        assert caught.value.code == "identity.database-version"
        assert "Run the version of Freehold that wrote it" in caught.value.hint
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert list(database.iterdump()) == before
        assert database.execute("PRAGMA user_version").fetchone() == (99,)
