"""The owner's answers to a permission request, and how long each permission lasts."""

from typing import Literal, cast

from freehold.agents.acp.json_rpc import Json

Reach = Literal["once", "conversation", "always"]
Answer = Literal["once", "conversation", "always", "reject"]

ALL_ANSWERS: tuple[Answer, ...] = ("once", "conversation", "always", "reject")
_OLD_ANSWERS = {"session": "conversation"}
"""Freehold 0.1.0 stored `session` for this conversation."""


def read_answer(stored: str | None) -> Answer | None:
    """An answer from the database."""
    return None if stored is None else cast("Answer", _OLD_ANSWERS.get(stored, stored))


def read_approval_event(data: Json) -> Json:
    """The data of a stored `approval` event, with the answers of today."""
    options = [read_answer(option) for option in data.get("options", [])]
    return {**data, "answer": read_answer(data.get("answer")), "options": options}
