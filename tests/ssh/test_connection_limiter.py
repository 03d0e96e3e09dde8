"""Who may try: against a clock and a chance that the test holds in its hands."""

from dataclasses import dataclass, field

import pytest

from freehold.ssh.gate import Gate, GateLimits, group_of


@dataclass(eq=False)
class Caller:
    address: str
    keyed: bool = False
    dropped: bool = field(default=False)

    def drop(self) -> None:
        self.dropped = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate(clock: Clock) -> Gate:
    return Gate(GateLimits(waiting=8, waiting_each=4, early_drop=4, failures=3), clock=clock, chance=lambda: 0.999)


def fail(gate: Gate, address: str, times: int) -> bool:
    banned = False
    for _ in range(times):
        caller = Caller(address)
        if gate.admit(caller):
            banned = gate.gave_up(caller, tried=True) or banned
    return banned


def test_failed_tries_lead_to_a_ban_that_ends_and_then_doubles(gate: Gate, clock: Clock) -> None:
    assert fail(gate, "192.0.2.1", 3)
    assert not gate.admit(Caller("192.0.2.1"))
    assert gate.admit(Caller("192.0.2.2"))
    clock.now = 61
    assert fail(gate, "192.0.2.1", 3)
    clock.now = 61 + 61
    assert not gate.admit(Caller("192.0.2.1"))
    clock.now = 61 + 121
    assert gate.admit(Caller("192.0.2.1"))


def test_tries_that_are_far_apart_are_forgiven(gate: Gate, clock: Clock) -> None:
    for moment in range(0, 600, 40):
        clock.now = float(moment)
        assert not fail(gate, "192.0.2.1", 1)


def test_the_owners_addresses_are_never_banned(gate: Gate) -> None:
    gate.know_owner(["192.0.2.1"])
    assert not fail(gate, "192.0.2.1", 100)
    assert gate.admit(Caller("192.0.2.1"))


def test_one_that_says_nothing_has_not_tried(gate: Gate) -> None:
    """A port check, or the owner's client that changed its mind."""
    for _ in range(100):
        caller = Caller("192.0.2.1")
        assert gate.admit(caller)
        assert not gate.gave_up(caller, tried=False)


def test_one_address_holds_no_more_than_its_share(gate: Gate) -> None:
    callers = [Caller("192.0.2.1") for _ in range(50)]
    assert all(gate.admit(caller) for caller in callers)
    assert gate.waiting == 4
    assert sum(caller.dropped for caller in callers) == 46


def test_the_owner_comes_in_past_any_number_who_hold_the_line(gate: Gate) -> None:
    gate.know_owner(["192.0.2.99"])
    holders = [Caller(f"192.0.2.{number}") for number in range(8)]
    for holder in holders:
        gate.admit(holder)
    for _ in range(20):
        assert gate.admit(Caller("192.0.2.99"))
    assert gate.waiting <= 8


def test_those_that_got_further_are_dropped_last(gate: Gate) -> None:
    further = [Caller("192.0.2.1", keyed=True) for _ in range(3)]
    for caller in further:
        assert gate.admit(caller)
    for _ in range(50):
        assert gate.admit(Caller("192.0.2.1"))
    assert not any(caller.dropped for caller in further)


def test_strangers_are_dropped_early_and_at_random_when_it_is_crowded(clock: Clock) -> None:
    gate = Gate(GateLimits(waiting=8, waiting_each=8, early_drop=4), clock=clock, chance=lambda: 0.4)
    admitted = [gate.admit(Caller(f"192.0.2.{number}")) for number in range(8)]
    assert admitted == [True] * 6 + [False] * 2


def test_many_failures_in_total_slow_strangers_and_not_the_owner(clock: Clock) -> None:
    gate = Gate(GateLimits(failures_total=50), clock=clock, chance=lambda: 0.5)
    gate.know_owner(["192.0.2.99"])
    for number in range(50):
        fail(gate, f"198.51.100.{number}", 1)
    assert not gate.admit(Caller("203.0.113.1"))
    assert gate.admit(Caller("192.0.2.99"))
    clock.now = 61
    assert gate.admit(Caller("203.0.113.1"))


def test_what_is_remembered_is_bounded(clock: Clock) -> None:
    gate = Gate(GateLimits(remembered=100, failures=1, failures_total=10**6), clock=clock)
    for number in range(1000):
        fail(gate, f"10.0.{number // 250}.{number % 250}", 1)
    assert len(gate._bans) <= 100
    assert len(gate._failures) <= 100


def test_connections_are_bounded(clock: Clock) -> None:
    gate = Gate(GateLimits(connected=2), clock=clock)
    callers = [Caller("192.0.2.1") for _ in range(3)]
    for caller in callers:
        gate.admit(caller)
    assert [gate.let_in(caller) for caller in callers] == [True, True, False]
    gate.left()
    assert gate.let_in(Caller("192.0.2.1"))


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff", "2001:db8::/64"),
        ("::1", "::1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_neighbours_in_one_subscribers_network_are_one(address: str, group: str) -> None:
    assert group_of(address) == group
