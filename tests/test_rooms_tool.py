"""The contract of a room refuses an import that it does not name."""

import pytest
from tools.rooms import NOTHING, Room, describe_rooms


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("freehold.history.undo", True),
        ("freehold.errors", True),
        ("freehold.identity.sign_ins", True),
        ("freehold.identity.tokens", False),
        ("freehold.identity", False),
        ("freehold.gateway.guard", False),
        ("freehold.historyx", False),
    ],
)
def test_a_room_may_import_itself_the_shared_modules_and_what_it_names(module: str, allowed: bool) -> None:
    assert Room("history", "", ("identity.sign_ins",)).allows(module) is allowed


def test_a_room_that_imports_nothing_may_not_even_import_the_shared_modules() -> None:
    assert not Room("guest", "", (NOTHING,)).allows("freehold.errors")
    assert Room("guest", "", (NOTHING,)).allows("freehold.guest.link")


def test_the_table_has_a_row_for_each_room() -> None:
    table = describe_rooms([Room("guest", "pid 1", (NOTHING,)), Room("ssh", "SSH access", ("computer",))])
    assert table.splitlines()[2:] == ["| `guest` | pid 1 | nothing of ours |", "| `ssh` | SSH access | `computer` |"]
