"""The tables of routines in a home that an earlier version has made."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.routines.conftest import SetClock

from freehold.errors import FreeholdError
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_store import RunStore
from freehold.routines.schema import SCHEMA
from freehold.routines.section import RoutineSection
from freehold.timeline import Timeline

GOLDEN = Path(__file__).parents[1] / "timeline" / "golden" / "v1.sql"


def test_a_timeline_of_the_first_version_gets_the_tables_once(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "timeline.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(GOLDEN.read_text())
    for _ in range(2):
        with Timeline(path) as timeline:
            before = timeline.measure().events
            routines = RoutineStore(timeline, clock)
            routines.prepare()
            assert timeline.measure().events == before
    with Timeline(path) as timeline:
        routines = RoutineStore(timeline, clock)
        routines.add("r", RoutineSection(webhook=True, command="true"), who="owner")
        assert RunStore(routines).trigger("r", "webhook:1", {}) is not None
        assert timeline.verify() == []
        assert timeline.query("SELECT steps FROM room WHERE name = 'routines'") == [(len(SCHEMA),)]


def test_tables_of_a_newer_version_are_left_alone(tmp_path: Path, clock: SetClock) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("routines", *SCHEMA, "CREATE TABLE routines_later (x)")
        with pytest.raises(FreeholdError) as caught:
            RoutineStore(timeline, clock).prepare()
    assert caught.value.code == "timeline.newer"
