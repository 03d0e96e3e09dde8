"""Model requests that hide what a provider would fetch or keep: the field policy against an oracle of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pydantic_core
from tests.attack.target import RunRound
from tests.egress.models.forbidden_requests import (
    PATHS,
    draw_forbidden,
    draw_mixed,
    find_reach,
    harmless,
    spell,
    submit,
)

from freehold.egress.models.paths import RequestForm
from freehold.errors import FreeholdError

REQUESTS = 150
REFUSALS = frozenset({"models.malformed", "models.reaches-out", "models.unknown-field"})


@asynccontextmanager
async def open_target(_folder: Path) -> AsyncIterator[RunRound]:
    async def run_round(random: Random) -> int:
        for _ in range(REQUESTS):
            _try_forbidden(random)
            _try_mixed(random)
            _try_damaged(random)
        return 3 * REQUESTS

    yield run_round


def _try_forbidden(random: Random) -> None:
    form, content, feature = draw_forbidden(random)
    assert _sent(form, spell(content, random)) is None, f"{feature} got through in {form}: {content}"


def _try_mixed(random: Random) -> None:
    form, content = draw_mixed(random)
    _check(_sent(form, spell(content, random)))


def _try_damaged(random: Random) -> None:
    """A harmless or forbidden request with a few bytes changed."""
    form = random.choice(list(PATHS))
    content = harmless(form)
    if random.random() < 0.5:
        form, content, _feature = draw_forbidden(random)
    body = bytearray(spell(content, random))
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(body))
        body[at : at + random.randrange(2)] = random.choice([b"", b'"', b"\\", b"{", b"}", b",", random.randbytes(1)])
    _check(_sent(form, bytes(body)))


def _sent(form: RequestForm, body: bytes) -> bytes | None:
    try:
        return submit(form, body).body
    except FreeholdError as refused:
        if refused.code not in REFUSALS:
            raise
        return None


def _check(sent: bytes | None) -> None:
    if sent is not None:
        found = find_reach(pydantic_core.from_json(sent, allow_inf_nan=False))
        assert found is None, f"{found!a} got through: {sent!a}"
