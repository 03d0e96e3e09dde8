"""The limits on unauthenticated connections, with a fake clock and fixed random numbers."""

from dataclasses import dataclass, field

import pytest

from freehold.ssh.connection_limiter import ConnectionLimiter, ConnectionLimits, address_group


@dataclass(eq=False)
class FakeConnection:
    address: str
    has_exchanged_keys: bool = False
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
def limiter(clock: Clock) -> ConnectionLimiter:
    return ConnectionLimiter(
        ConnectionLimits(pending=8, pending_per_address=4, early_drop_from=4, failures=3),
        clock=clock,
        chance=lambda: 0.999,
    )


def fail(limiter: ConnectionLimiter, address: str, times: int) -> bool:
    banned = False
    for _ in range(times):
        connection = FakeConnection(address)
        if limiter.admit(connection):
            banned = limiter.remove_pending(connection, tried=True) or banned
    return banned


def test_failures_lead_to_a_ban_that_doubles_the_next_time(limiter: ConnectionLimiter, clock: Clock) -> None:
    assert fail(limiter, "192.0.2.1", 3)
    assert not limiter.admit(FakeConnection("192.0.2.1"))
    assert limiter.admit(FakeConnection("192.0.2.2"))
    clock.now = 61
    assert fail(limiter, "192.0.2.1", 3)
    clock.now = 61 + 61
    assert not limiter.admit(FakeConnection("192.0.2.1"))
    clock.now = 61 + 121
    assert limiter.admit(FakeConnection("192.0.2.1"))


def test_failures_that_are_far_apart_do_not_ban(limiter: ConnectionLimiter, clock: Clock) -> None:
    for moment in range(0, 600, 40):
        clock.now = float(moment)
        assert not fail(limiter, "192.0.2.1", 1)


def test_the_owners_addresses_are_never_banned(limiter: ConnectionLimiter) -> None:
    limiter.add_owner_addresses(["192.0.2.1"])
    assert not fail(limiter, "192.0.2.1", 100)
    assert limiter.admit(FakeConnection("192.0.2.1"))


def test_a_connection_that_sends_nothing_is_not_a_failure(limiter: ConnectionLimiter) -> None:
    """A port check, or the owner's client that changed its mind."""
    for _ in range(100):
        connection = FakeConnection("192.0.2.1")
        assert limiter.admit(connection)
        assert not limiter.remove_pending(connection, tried=False)


def test_the_pending_connections_of_one_address_are_bounded(limiter: ConnectionLimiter) -> None:
    connections = [FakeConnection("192.0.2.1") for _ in range(50)]
    assert all(limiter.admit(connection) for connection in connections)
    assert limiter.pending == 4
    assert sum(connection.dropped for connection in connections) == 46


def test_a_flood_does_not_lock_out_the_owner(limiter: ConnectionLimiter) -> None:
    limiter.add_owner_addresses(["192.0.2.99"])
    holders = [FakeConnection(f"192.0.2.{number}") for number in range(8)]
    for holder in holders:
        limiter.admit(holder)
    for _ in range(20):
        assert limiter.admit(FakeConnection("192.0.2.99"))
    assert limiter.pending <= 8


def test_connections_after_the_key_exchange_are_dropped_last(limiter: ConnectionLimiter) -> None:
    further = [FakeConnection("192.0.2.1", has_exchanged_keys=True) for _ in range(3)]
    for connection in further:
        assert limiter.admit(connection)
    for _ in range(50):
        assert limiter.admit(FakeConnection("192.0.2.1"))
    assert not any(connection.dropped for connection in further)


def test_unknown_addresses_are_dropped_at_random_under_load(clock: Clock) -> None:
    limiter = ConnectionLimiter(
        ConnectionLimits(pending=8, pending_per_address=8, early_drop_from=4), clock=clock, chance=lambda: 0.4
    )
    admitted = [limiter.admit(FakeConnection(f"192.0.2.{number}")) for number in range(8)]
    assert admitted == [True] * 6 + [False] * 2


def test_many_failures_slow_strangers_and_not_the_owner(clock: Clock) -> None:
    limiter = ConnectionLimiter(ConnectionLimits(failures_total=50), clock=clock, chance=lambda: 0.5)
    limiter.add_owner_addresses(["192.0.2.99"])
    for number in range(50):
        fail(limiter, f"198.51.100.{number}", 1)
    assert not limiter.admit(FakeConnection("203.0.113.1"))
    assert limiter.admit(FakeConnection("192.0.2.99"))
    clock.now = 61
    assert limiter.admit(FakeConnection("203.0.113.1"))


def test_the_number_of_remembered_addresses_is_bounded(clock: Clock) -> None:
    limiter = ConnectionLimiter(ConnectionLimits(addresses=100, failures=1, failures_total=10**6), clock=clock)
    for number in range(1000):
        fail(limiter, f"10.0.{number // 250}.{number % 250}", 1)
    assert len(limiter._bans) <= 100
    assert len(limiter._failures) <= 100


def test_connections_are_bounded(clock: Clock) -> None:
    limiter = ConnectionLimiter(ConnectionLimits(connected=2), clock=clock)
    connections = [FakeConnection("192.0.2.1") for _ in range(3)]
    for connection in connections:
        limiter.admit(connection)
    assert [limiter.accept(connection) for connection in connections] == [True, True, False]
    limiter.release()
    assert limiter.accept(FakeConnection("192.0.2.1"))


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
def test_addresses_of_one_subscriber_are_one_group(address: str, group: str) -> None:
    assert address_group(address) == group
