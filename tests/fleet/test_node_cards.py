"""The GPUs of a node, and the wish for one."""

import pytest

from freehold.errors import FreeholdError
from freehold.fleet.node_cards import NodeCards
from freehold.fleet.place import read_place


def test_a_card_is_in_one_computer_at_a_time() -> None:
    cards = NodeCards((1, 0))
    with cards.held(1) as first, cards.held(1) as second:
        assert first == ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
        assert second[0] == "/dev/nvidia1"
        with pytest.raises(FreeholdError, match="0 of this node are free"), cards.held(1):
            pass
        with cards.held(0) as none:
            assert none == ()
    with cards.held(2) as both:
        assert both[:2] == ("/dev/nvidia0", "/dev/nvidia1")


def test_gpus_are_wished_for_in_the_place() -> None:
    assert read_place("ray:///srv/freehold?gpus=2").gpus == 2
    assert read_place("ray:///srv/freehold").gpus == 0
    with pytest.raises(FreeholdError, match="is not a number from 0 to 99"):
        read_place("ray:///srv/freehold?gpus=-1")
