"""What a call says while its slot cannot be reached."""

from freehold.slots.errors import slot_unavailable


def test_the_reason_of_an_earlier_loss_is_not_said_twice() -> None:
    first = slot_unavailable("beads", "connection refused")
    assert first.message == "The beads slot cannot be reached: connection refused"
    assert slot_unavailable("beads", first.message).message == first.message
