"""Which turns belong together: an answer to an agent that has ended is the prompt of a turn of its own."""

from freehold.agents.sessions.approval_store import ApprovalStore
from freehold.agents.sessions.turn_store import TurnStore
from freehold.errors import FreeholdError

ANSWER_KEY = "approval:"
"""How the key of a prompt begins that brings an answer of the owner to an agent. Its turn goes on with the one that asked."""


def find_first_key(turns: TurnStore, approvals: ApprovalStore, session: str, turn: int) -> str:
    """The key of the prompt that began a turn, or began the one whose question it goes on with. Blocks.

    Raises `turn.not-found`.
    """
    key = turns.get(session, turn).key
    while key.startswith(ANSWER_KEY):
        asked = _find_asking_turn(approvals, session, key)
        if asked is None or asked >= turn:
            break
        turn, key = asked, turns.get(session, asked).key
    return key


def list_own_turns(turns: TurnStore, approvals: ApprovalStore, session: str, turn: int) -> list[int]:
    """A turn, and those that go on with what it has asked, in their order. Blocks."""
    own = [turn]
    for later, key in turns.list_later(session, turn, ANSWER_KEY):
        if _find_asking_turn(approvals, session, key) in own:
            own.append(later)
    return own


def _find_asking_turn(approvals: ApprovalStore, session: str, key: str) -> int | None:
    """None when no turn of this session has asked what the key names: a client chooses the keys of its prompts."""
    try:
        asked = approvals.get(key.removeprefix(ANSWER_KEY))
    except FreeholdError as error:
        if error.code != "approval.not-found":
            raise
        return None
    return asked.turn if asked.session == session else None
