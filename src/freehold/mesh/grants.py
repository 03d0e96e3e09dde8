"""What a neighbour can be given."""

from typing import Literal, get_args

Grant = Literal["beads", "pods", "memory", "events", "work", "register"]
"""A slot, work by an agent here, or a place in the table of clients."""
GRANTS: tuple[Grant, ...] = get_args(Grant)
SLOT_GRANTS: tuple[Grant, ...] = ("beads", "pods", "memory", "events")
