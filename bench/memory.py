"""Does memory find what is asked for, and how fast? Beside full text alone and vectors alone, with and without noise.

The notes and questions are in bench/data/memory_notes.txt: 200 notes, 100 questions in other words, 25 with a name or a
code, 20 without an answer. Noise is 10,000 sentences about alike things, with codes that look alike.
"""

import asyncio
import os
import random
import re
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import psycopg
from numpy.typing import NDArray
from tests.support.postgres import running_postgres

from bench.harness import Figure, main
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.slots import Slot, SlotCaller
from freehold.slots.host import SlotPlace, make_slot
from freehold.slots.memory.contract import MAX_RECORDS, GetMemoryStatus, ImportMemories, SearchMemories, StoreMemory
from freehold.slots.memory.embedder import OwnEmbedder
from freehold.slots.memory.minilm.model import MiniLm
from freehold.timeline import Timeline

OWNER = SlotCaller("owner")
STORE_AIM, SEARCH_AIM = 20.0, 25.0
"""Milliseconds at the 95th percentile."""
Kind = Literal["paraphrase", "name", "none"]
Found = Callable[[str], Awaitable[list[str]]]


@dataclass(frozen=True)
class Question:
    text: str
    kind: Kind
    answer: str | None


def read_set() -> tuple[list[str], list[Question]]:
    notes: list[str] = []
    questions: list[Question] = []
    for line in (Path(__file__).parent / "data/memory_notes.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("??"):
            questions.append(Question(line[2:].strip(), "none", None))
            continue
        note, mark, asked = (part.strip() for part in re.fullmatch(r"(.*?)(?:(\|\||==)(.*))?", line).groups(""))  # type: ignore[union-attr]
        notes.append(note)
        if asked:
            questions.append(Question(asked, "name" if mark == "==" else "paraphrase", note))
    return notes, questions


_WHO = (
    "The accountant|My brother|The gardener|A colleague|The postman|Our landlord|The new manager|The nurse|A student"
    "|The driver|The architect|My niece|The baker|The auditor|The coach|The pharmacist|A visitor|The mayor|The editor"
    "|The night guard|Our tutor|The cashier|The surveyor"
)
_DID = (
    "keeps|moved|ordered|sold|repaired|lost|painted|forgot|returned|measured|cleaned|borrowed|photographed|promised"
    "|cancelled|copied|tested|replaced|hid|signed|checked|renewed|described|postponed"
)
_WHAT = (
    "the summer tyres|a box of old letters|the monthly report|the garden bench|two tickets for the opera"
    "|the spare laptop|the contract for the storage room|a crate of apples|the loading ramp|the test server"
    "|the blue curtains|the insurance form|a bag of cement|the customer list|the projector|the fishing licence"
    "|the winter coats|the staging cluster|the water filter|the piano stool|the visa application|the train timetable"
    "|the safety shoes|the backup tapes|the guest list|the oven thermostat|the rental agreement|the sample data"
    "|the travel insurance|the medical file"
)
_WHERE = (
    "in the basement|at the station|near the old mill|on the third floor|in the shared folder|behind the counter"
    "|at the branch in Leeds|in the northern office|under the stairs|next to the loading dock|in the school hall"
    "|at the harbour|in the staging account|at the clinic|on the roof terrace|in the archive|at the front desk"
    "|in the rehearsal room|by the river|in the second drawer"
)
_WHEN = (
    "last Tuesday|every second month|before the holidays|on the first of June|after the audit|since the storm"
    "|until further notice|in the early evening|during the trade fair|twice a year|at half past seven"
    "|the day after the meeting|for the third time|since 2019|at the end of the quarter|over the weekend"
    "|between two and four|on rainy days|after the update|by the end of March"
)
_CODED = (
    "Ticket OPS-{0} is about {1}.|Invoice INV-2024-{0} is about {1}.|Order {0}-{2} is about {1}."
    "|The serial number of {1} is SN{0}{2}.|Commit {3} changed {1}.|The reference of {1} is PX-{0}{2}-K."
    "|The error code E_QUOTA_{2} is about {1}.|The address of {1} is 192.168.{4}.{5}.|Flight TP{0} carries {1}."
    "|Our customer number for {1} is {0}-{2}-09."
)


def make_noise(count: int) -> list[str]:
    """Different sentences, the same each time. One in six has a code like those of the notes."""
    chance = random.Random(7)
    found: dict[str, None] = {}
    while len(found) < count:
        parts = [chance.choice(words.split("|")) for words in (_WHO, _DID, _WHAT, _WHERE, _WHEN)]
        sentence = " ".join(parts) + "."
        if chance.random() < 1 / 6:
            number, small = chance.randrange(1000, 9999), chance.randrange(10, 99)
            commit = f"{chance.randrange(16**7):07x}"
            sentence = chance.choice(_CODED.split("|")).format(
                number, parts[2], small, commit, chance.randrange(256), chance.randrange(256)
            )
        found[sentence] = None
    return list(found)


# Ours and the peers


def full_text(notes: Sequence[str]) -> Found:
    """SQLite's full text search with stems, ranked by BM25: what a memory without vectors would be."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE note USING fts5(body, tokenize='porter unicode61')")
    database.executemany("INSERT INTO note VALUES (?)", [(note,) for note in notes])

    async def search(question: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question.lower()))
        rows = database.execute("SELECT body FROM note WHERE note MATCH ? ORDER BY rank LIMIT 5", (words,))
        return [row[0] for row in rows]

    return search


def vectors_alone(notes: Sequence[str], rows: NDArray[np.float32], model: MiniLm) -> Found:
    async def search(question: str) -> list[str]:
        scores = rows @ model.embed([question])[0]
        return [notes[place] for place in np.argsort(-scores)[:5]]

    return search


def through(slot: Slot) -> Found:
    async def search(question: str) -> list[str]:
        return [one.memory.text for one in (await slot.call(SearchMemories(question), OWNER)).matches]

    return search


@dataclass(frozen=True)
class Quality:
    """Parts of 1. `recall`: the answer is among the first five. `first`: it is the first. `precision`: of the first
    results of all questions, those that are right; a result for a question without an answer is wrong."""

    recall: dict[Kind, float]
    first: dict[Kind, float]
    precision: float


async def assess(search: Found, questions: Sequence[Question]) -> Quality:
    within: dict[Kind, list[bool]] = {"paraphrase": [], "name": []}
    first: dict[Kind, list[bool]] = {"paraphrase": [], "name": []}
    given = right = 0
    for question in questions:
        found = await search(question.text)
        given += bool(found)
        right += found[:1] == [question.answer]
        if question.kind != "none":
            within[question.kind].append(question.answer in found)
            first[question.kind].append(found[:1] == [question.answer])
    return Quality(
        {kind: statistics.mean(hits) for kind, hits in within.items()},
        {kind: statistics.mean(hits) for kind, hits in first.items()},
        right / given if given else 0.0,
    )


async def fill(slot: Slot, texts: Sequence[str]) -> None:
    """Stores texts, and waits until all can be found by meaning."""
    for start in range(0, len(texts), MAX_RECORDS):
        some = enumerate(texts[start : start + MAX_RECORDS], start)
        await slot.call(ImportMemories(tuple({"id": f"n{n:06}", "text": text} for n, text in some)), OWNER)
    async with asyncio.TaskGroup() as group:
        working = group.create_task(slot.run())
        while (await slot.call(GetMemoryStatus(), OWNER)).waiting:  # noqa: ASYNC110 - the slot tells nobody
            await asyncio.sleep(0.1)
        working.cancel()
    await slot.connect()


async def measure_quality(place: SlotPlace, quick: bool) -> AsyncIterator[Figure]:
    notes, questions = read_set()
    noise = make_noise(400 if quick else 10_000)
    model = MiniLm()
    slot = make_slot("memory", SlotSection(mode="local"), place)
    await slot.connect()
    for texts in (notes, [*notes, *noise]):
        await fill(slot, texts)
        ours = await assess(through(slot), questions)
        words = await assess(full_text(texts), questions)
        vectors = await assess(vectors_alone(texts, model.embed(texts), model), questions)
        about = f"{len(notes)} notes" + (f" and {len(noise)} of noise" if len(texts) > len(notes) else "")
        for figure in compare(about, ours, words, vectors):
            yield figure
    await slot.close()


def compare(about: str, ours: Quality, words: Quality, vectors: Quality) -> Iterator[Figure]:
    rows: tuple[tuple[str, Callable[[Quality], float], bool, bool], ...] = (
        ("recall@5, other words", lambda one: one.recall["paraphrase"], True, True),
        ("first, other words", lambda one: one.first["paraphrase"], True, False),
        ("recall@5, names and codes", lambda one: one.recall["name"], False, True),
        ("first, names and codes", lambda one: one.first["name"], False, True),
        ("precision of the first", lambda one: one.precision, True, False),
    )
    for name, read, beats_words, beats_vectors in rows:
        found = read(ours)
        if beats_words:
            met = found >= read(words) + 0.2
            yield Figure(f"{name}, {about}", found, "", "full text", read(words), "at least 0.2 more", met)
        if beats_vectors:
            met = found >= read(vectors)
            yield Figure(f"{name}, {about}", found, "", "vectors alone", read(vectors), "at least the same", met)
        elif not beats_words or name.startswith("precision"):
            yield Figure(f"{name}, {about}", found, "", "vectors alone", read(vectors))


# Speed


def no_secret(name: str) -> Secret:
    raise AssertionError(name)


def p95(durations: list[float]) -> float:
    return statistics.quantiles(durations, n=20)[-1]


async def time_calls(act: Callable[[int], Awaitable[object]], times: int) -> list[float]:
    """How long each call took, in milliseconds."""
    found = []
    for number in range(times):
        begin = time.perf_counter()
        await act(number)
        found.append((time.perf_counter() - begin) * 1000)
    return found


async def time_in_turn(
    first: Callable[[int], Awaitable[object]], second: Callable[[int], Awaitable[object]], times: int
) -> tuple[list[float], list[float]]:
    """Each after the other, so that what disturbs one disturbs the other as well."""
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(times):
        for place, act in enumerate((first, second)):
            begin = time.perf_counter()
            await act(number)
            found[place].append((time.perf_counter() - begin) * 1000)
    return found


async def measure_speed(place: SlotPlace, quick: bool) -> AsyncIterator[Figure]:
    """Vectors of the many entries are made up: making them would take a quarter of an hour, and their number counts."""
    entries, times = (20_000, 40) if quick else (100_000, 300)
    slot = make_slot("memory", SlotSection(mode="local"), place)
    await slot.connect()
    await asyncio.to_thread(plant_entries, place.timeline, entries)
    questions = [question.text for question in read_set()[1]]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await slot.call(SearchMemories("warm"), OWNER)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    stored = await time_calls(lambda n: slot.call(StoreMemory(f"A new note, number {n}", key=f"k{n}"), OWNER), times)
    await slot.call(SearchMemories("warm"), OWNER)
    searched = await time_calls(lambda n: slot.call(SearchMemories(questions[n % len(questions)]), OWNER), times)
    embedder = OwnEmbedder()
    await embedder.embed(["warm"])
    embedded = await time_calls(lambda n: embedder.embed([questions[n % len(questions)]]), times)
    await embedder.close()

    async def store_and_find(number: int) -> None:
        await slot.call(StoreMemory(f"Another note, number {number}, about a thing"), OWNER)
        await slot.call(SearchMemories(f"thing number {number}"), OWNER)

    both = await time_calls(store_and_find, times // 3)
    peer = "the model alone", p95(embedded)
    aims = (
        (f"store, p95, {entries} entries", p95(stored), STORE_AIM),
        (f"search, p95, {entries} entries", p95(searched), SEARCH_AIM),
    )
    for name, found, aim in aims:
        yield Figure(f"memory {name}", found, "ms", *peer, f"at most {aim:g} ms", found <= aim)
    yield Figure(f"memory store and find it at once, p95, {entries} entries", p95(both), "ms", *peer)
    yield Figure(f"memory of the index, {entries} entries", grown, "MiB")
    await slot.close()


def plant_entries(timeline: Timeline, count: int) -> None:
    """Entries with their words and with vectors of length 1."""
    from freehold.slots.memory.words import find_terms

    chance = np.random.default_rng(3)
    noise = make_noise(10_000)
    for start in range(0, count, 10_000):
        rows = chance.standard_normal((10_000, 384)).astype("float32")
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        with timeline.transaction() as tx:
            for place, row in enumerate(rows):
                id, text = f"p{start + place:06}", f"{noise[place]} ({start})"
                entry = (id, "shared", text, text.casefold(), "owner", 0.0, "owner", 0.0, 0, 0, 1, OwnEmbedder.name)
                tx.execute(
                    "INSERT INTO memory_entry (id, namespace, body, search, origin, created, created_by, updated,"
                    " pinned, used, version, embedded) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    entry,
                )
                for term in find_terms(text):
                    tx.execute("INSERT INTO memory_word VALUES (?, ?)", (term, id))
                vector = row.astype("<f2").tobytes()
                stamp = start + place + 1
                tx.execute("INSERT INTO memory_vector VALUES (?, 0, ?, ?, ?)", (id, OwnEmbedder.name, vector, stamp))
            tx.execute("UPDATE memory_stamp SET stamp = ?", (start + 10_000,))


async def measure_external(place: SlotPlace, url: str, quick: bool) -> AsyncIterator[Figure]:
    """A bare client does the same: it asks for the nearest vectors and the words, and reads the rows.

    Both wait for the disk.
    """
    section = SlotSection(mode="external", settings={"url": url, "schema": "bench"})
    slot = make_slot("memory", section, place)
    await slot.connect()
    notes, questions = read_set()
    await fill(slot, notes)
    times = 40 if quick else 300
    model = MiniLm()
    options = "-c search_path=bench,public"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, options=options) as bare:

        async def bare_search(number: int) -> None:
            row = model.embed([questions[number % len(questions)].text])[0]
            vector = "[" + ",".join(f"{value:.6g}" for value in row.tolist()) + "]"
            near = "SELECT entry FROM memory_vector ORDER BY vector::vector(384) <=> %s::vector LIMIT 60"
            ids = [one[0] for one in await (await bare.execute(near, (vector,))).fetchall()]
            for read in (
                "SELECT * FROM memory_entry WHERE id = ANY(%s)",
                "SELECT * FROM memory_word WHERE entry = ANY(%s)",
            ):
                await (await bare.execute(cast("Any", read), (ids,))).fetchall()

        async def bare_store(number: int) -> None:
            async with bare.transaction():
                entry = (f"bare-{number}", "shared", "a note", "a note", "owner", 0.0, "owner", 0.0, 0, 0, 1, "")
                await bare.execute(
                    "INSERT INTO memory_entry (id, namespace, body, search, origin, created, created_by, updated,"
                    " pinned, used, version, embedded) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                    entry,
                )
                await bare.execute("INSERT INTO memory_word VALUES (%s, %s)", ("note", f"bare-{number}"))

        asked = [question.text for question in questions]
        pairs: dict[str, tuple[Callable[[int], Awaitable[object]], Callable[[int], Awaitable[object]]]] = {
            "search": (lambda n: slot.call(SearchMemories(asked[n % len(asked)]), OWNER), bare_search),
            "store": (lambda n: slot.call(StoreMemory(f"a note {n}"), OWNER), bare_store),
        }
        for name, (own, peer) in pairs.items():
            ours, theirs = await time_in_turn(own, peer, times)
            found, least = statistics.median(ours), statistics.median(theirs)
            words = "at most 3 times"
            yield Figure(
                f"memory {name}, median, postgres", found, "ms", "bare client", least, words, found <= 3 * least
            )
    await slot.close()


def measure(quick: bool) -> Iterator[Figure]:
    async def run(part: Callable[[SlotPlace], AsyncIterator[Figure]]) -> list[Figure]:
        with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / "timeline.db") as timeline:
            place = SlotPlace(Home(Path(folder), Path(folder)), timeline, no_secret, {})
            return [figure async for figure in part(place)]

    yield from asyncio.run(run(lambda place: measure_speed(place, quick)))
    with running_postgres(durable=True) as server:
        yield from asyncio.run(run(lambda place: measure_external(place, server.url, quick)))
    yield from asyncio.run(run(lambda place: measure_quality(place, quick)))


if __name__ == "__main__":
    main(__doc__ or "", measure)
