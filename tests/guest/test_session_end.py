"""After a stop of everything, processes go on in an order in which no shell sees its child stopped."""

import pytest

from freehold.guest.process_table import ProcessInfo
from freehold.guest.session_end import sort_children_first


def make_process(pid: int, parent: int, started: int = 100) -> ProcessInfo:
    return ProcessInfo(pid, f"{pid} (name) T {parent} {pid} {pid} ".encode() + b"0 " * 15 + b"%d 0 0" % started)


@pytest.mark.parametrize("first", [2, 900])
def test_a_child_goes_on_before_its_parent_though_both_started_in_the_same_moment(first: int) -> None:
    """With pids that began again at a low number too."""
    shell, job, child = make_process(700, 1), make_process(first, 700), make_process(first + 1, first)
    for order in ((shell, job, child), (child, job, shell), (job, shell, child)):
        assert [one.pid for one in sort_children_first({one.pid: one for one in order})] == [first + 1, first, 700]


def test_processes_that_name_each_other_as_parents_are_all_there() -> None:
    """A pid can be used again while the list is made."""
    one, other = make_process(10, 11), make_process(11, 10)
    assert {each.pid for each in sort_children_first({10: one, 11: other})} == {10, 11}


def test_a_long_chain_of_processes_is_sorted_with_one_look_at_each() -> None:
    looked = 0

    class Counted(dict[int, ProcessInfo]):
        def __getitem__(self, pid: int) -> ProcessInfo:
            nonlocal looked
            looked += 1
            return super().__getitem__(pid)

    chain = Counted({pid: make_process(pid, pid - 1) for pid in range(2, 3000)})
    assert [one.pid for one in sort_children_first(chain)] == list(range(2999, 1, -1))
    assert looked <= 2 * len(chain)
