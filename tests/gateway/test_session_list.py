"""The list of sessions is read to its end in pages and searched, however many there are."""

import asyncio
from typing import Any

from tests.gateway.running_gateway import RunningGateway

SESSIONS = 1_000
MANY = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
COLUMNS = "id, title, named, agent, status, created, updated, number"


def add_many(gateway: RunningGateway) -> None:
    """Of the same moment, so that only their ids tell them apart. Those of even numbers are unused."""
    timeline = gateway.context.sessions.dependencies.store.timeline
    with timeline.transaction() as tx:
        tx.execute(
            f"{MANY} INSERT INTO agents_session ({COLUMNS}) SELECT printf('%016x', i), 'Garden ' || i, i % 2,"
            " 'actor', 'idle', '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z', i FROM n",
            (SESSIONS,),
        )


async def read_all(gateway: RunningGateway, headers: dict[str, str], **given: str) -> list[list[dict[str, Any]]]:
    pages: list[list[dict[str, Any]]] = []
    cursor: str | None = ""
    while cursor is not None:
        params = {"limit": "200", **given, "cursor": cursor}
        page = (await gateway.http.get("/v1/sessions", params=params, headers=headers)).json()
        pages.append(page["sessions"])
        cursor = page["next"]
    return pages


async def test_a_thousand_sessions_are_read_in_five_pages(gateway: RunningGateway) -> None:
    await asyncio.to_thread(add_many, gateway)
    headers = gateway.token("read", "prompt")
    pages = await read_all(gateway, headers)
    assert [len(page) for page in pages] == [200] * 5
    ids = [row["id"] for page in pages for row in page]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == SESSIONS


async def test_pages_without_the_unused_ones_are_full(gateway: RunningGateway) -> None:
    await asyncio.to_thread(add_many, gateway)
    pages = await read_all(gateway, gateway.token("read", "prompt"), unused="false")
    assert [len(page) for page in pages] == [200, 200, 100]
    assert {int(row["id"], 16) % 2 for page in pages for row in page} == {1}


async def test_one_of_a_thousand_is_found_by_its_title(gateway: RunningGateway) -> None:
    await asyncio.to_thread(add_many, gateway)
    (page,) = await read_all(gateway, gateway.token("read", "prompt"), query="garden 517")
    assert [row["title"] for row in page] == ["Garden 517"]
