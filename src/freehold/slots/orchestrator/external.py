"""The orchestrator of another Freehold: one that is paired and is sent work, or one whose API is used with a token."""

from freehold.slots.host import SlotPlace
from freehold.slots.neighbour import is_paired
from freehold.slots.orchestrator.neighbour import NeighbourRuns
from freehold.slots.settings import ExternalSettings


def make_external(place: SlotPlace, settings: ExternalSettings) -> NeighbourRuns:
    url = settings.require("url")
    if is_paired(url):
        from freehold.slots.orchestrator.paired_runs import PairedRuns

        return NeighbourRuns("neighbour", url, PairedRuns(settings), place.timeline)
    from freehold.slots.orchestrator.token_runs import TokenRuns

    runs = TokenRuns(settings)
    return NeighbourRuns("freehold", runs.url, runs, place.timeline)
