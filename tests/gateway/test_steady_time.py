"""A clock for what is valid for a while and once: it goes along with the machine's, and never back."""

from freehold.gateway.steady_time import SteadyClock


class Machine:
    """A machine whose clock a test sets."""

    def __init__(self) -> None:
        self.wall, self.elapsed = 1_000_000.0, 50.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.elapsed)

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.elapsed += seconds


def test_it_is_the_time_of_the_machine() -> None:
    machine = Machine()
    machine.wait(30)
    assert machine.clock() == machine.wall


def test_it_goes_along_when_the_clock_is_set_ahead_or_the_machine_slept() -> None:
    machine = Machine()
    machine.wall += 3600
    assert machine.clock() == machine.wall


def test_it_goes_on_when_the_clock_is_set_back_until_that_has_caught_up() -> None:
    machine = Machine()
    machine.wait(10)
    before = machine.clock()
    machine.wall -= 600
    machine.wait(5)
    assert machine.clock() == before + 5
    machine.wall += 700
    assert machine.clock() == machine.wall
