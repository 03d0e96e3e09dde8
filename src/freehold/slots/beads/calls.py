"""Which steps carry out which call of the beads slot."""

from collections.abc import Callable
from typing import Any

from freehold.slots.beads import changes
from freehold.slots.beads.checks import check_id
from freehold.slots.beads.contract import (
    AddNeed,
    BeadDetails,
    ClaimBead,
    CloseBead,
    CommentBead,
    CreateBead,
    ExportBeads,
    GetBead,
    ImportBeads,
    ListBeads,
    ReleaseBead,
    RemoveNeed,
    ReopenBead,
    UpdateBead,
)
from freehold.slots.beads.pages import list_beads
from freehold.slots.beads.records import export_beads, import_beads
from freehold.slots.beads.rows import read_details
from freehold.slots.contract import CallContext, SlotCall
from freehold.slots.statement import Steps


def get_bead(request: GetBead, _context: CallContext) -> Steps[BeadDetails]:
    check_id(request.id)
    return (yield from read_details(request.id))


STEPS_OF_CALL: dict[type[SlotCall[Any]], Callable[[Any, CallContext], Steps[Any]]] = {
    GetBead: get_bead,
    ListBeads: list_beads,
    CreateBead: changes.create_bead,
    UpdateBead: changes.update_bead,
    ClaimBead: changes.claim_bead,
    ReleaseBead: changes.release_bead,
    CloseBead: changes.close_bead,
    ReopenBead: changes.reopen_bead,
    AddNeed: changes.add_need,
    RemoveNeed: changes.remove_need,
    CommentBead: changes.comment_bead,
    ExportBeads: export_beads,
    ImportBeads: import_beads,
}
