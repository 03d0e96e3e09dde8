"""What the pages around sign-in say, as data: the gateway draws them."""

from dataclasses import dataclass
from typing import Literal

from freehold.errors import FreeholdError

Action = Literal["atproto", "link", "again"]


@dataclass(frozen=True)
class Page:
    """`action` is the one thing offered: sign in with AT Protocol, wait for the link, or begin again."""

    title: str
    message: str
    what_to_do: str
    action: Action
    status: int = 200


def sign_in_page(*, owner: str | None, handle: str | None) -> Page:
    """The handle is display only, as freehold.toml has it; without an owner DID there is only the link."""
    if owner is None:
        return Page(
            "Open this Freehold with its link",
            "It is for this machine only, so a link that works once signs this browser in",
            "Run `freehold open` in a terminal on this machine",
            "link",
        )
    return Page(
        "Sign in",
        f"This Freehold belongs to {handle or owner}",
        "You prove who you are at your own PDS; no password is asked for here",
        "atproto",
    )


def problem_page(problem: FreeholdError, *, title: str, status: int) -> Page:
    return Page(title, problem.message, problem.hint, "again", status)


LINK_REFUSED = Page(
    "This link does not work",
    "A link signs in one browser, once, within ten minutes",
    "Run `freehold open` in a terminal on this machine for another one",
    "link",
    403,
)
