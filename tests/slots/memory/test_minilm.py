"""The model that comes with Freehold reads texts as its tokenizer does, and finds the same meanings as its weights."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.slots.memory.lookup import VectorChange
from freehold.slots.memory.minilm.model import DIMENSIONS, VOCABULARY, MiniLm
from freehold.slots.memory.minilm.safetensors import read_tensors, write_tensors
from freehold.slots.memory.minilm.wordpiece import WordPieces
from freehold.slots.memory.parts import OVERLAP, PART, split_parts
from freehold.slots.memory.vectors import VectorIndex
from freehold.slots.memory.words import find_terms

TOKENS = json.loads((Path(__file__).parent / "data/tokens.json").read_text())
"""Made by the library `tokenizers` with the tokenizer of the model."""


@pytest.fixture(scope="module")
def pieces() -> WordPieces:
    return WordPieces(VOCABULARY.read_text("utf-8").split("\n"))


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return MiniLm()


@pytest.mark.parametrize(("text", "tokens"), TOKENS, ids=[str(n) for n in range(len(TOKENS))])
def test_texts_have_the_tokens_of_the_original_tokenizer(pieces: WordPieces, text: str, tokens: list[int]) -> None:
    # The marks of begin and end in a text of ours are plain words, so that no text can pretend to have ended.
    if "[CLS]" not in text:
        assert pieces.encode(text, 256) == tokens
    else:
        assert pieces.encode(text, 256).count(pieces.end) == 1


@given(st.text(max_size=600), st.integers(3, 256))
@settings(max_examples=100, deadline=None)
def test_any_text_has_tokens_within_the_limit(pieces: WordPieces, text: str, longest: int) -> None:
    tokens = pieces.encode(text, longest)
    assert 2 <= len(tokens) <= longest
    assert (tokens[0], tokens[-1]) == (pieces.begin, pieces.end)


def test_vectors_have_length_one_and_do_not_depend_on_their_neighbours(model: MiniLm) -> None:
    texts = ["Anna's passport runs out", "", "long " * 400, "The bread is in the oven", "When must I renew my papers?"]
    together = model.embed(texts)
    assert together.shape == (5, DIMENSIONS)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, row in zip(texts, together, strict=True):
        assert float(model.embed([text])[0] @ row) > 0.999
    assert together[0] @ together[4] > 2 * abs(together[3] @ together[4])


def test_the_vector_of_the_original_weights_is_nearly_the_same(model: MiniLm) -> None:
    """By the floats of the package: the first numbers of one vector, which int8 changes in the third digit."""
    row = model.embed(["The passport of Anna expires next November."])[0]
    assert np.allclose(row[:4], [-0.05117, 0.08126, 0.06116, 0.04638], atol=0.01)


def test_tensors_are_read_as_they_were_written(tmp_path: Path) -> None:
    tensors = {"a": np.arange(6, dtype="float32").reshape(2, 3), "b": np.array([-128, 127], "int8")}
    write_tensors(tmp_path / "x", tensors)
    found = read_tensors(tmp_path / "x")
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("rows", [300, 20_000])
def test_the_index_finds_what_comparing_everything_finds(rows: int) -> None:
    """After rows were added, replaced and dropped, in a few namespaces, also beyond the size of exact search."""
    chance, order = np.random.default_rng(1), random.Random(1)
    index = VectorIndex(24)
    held: dict[str, tuple[str, np.ndarray]] = {}

    def change(count: int) -> list[VectorChange]:
        found: list[VectorChange] = []
        for _ in range(count):
            row = chance.standard_normal(24).astype("float16")
            row /= np.linalg.norm(row)
            entry, space = f"e{order.randrange(rows * 2)}", f"n{order.randrange(3)}"
            if entry not in {one.entry for one in found[-1:]}:
                found.append(VectorChange(entry, 0, space, row.tobytes()))
        return list({one.entry: one for one in found}.values())

    while len(held) < rows:
        changes = change(rows // 2)
        gone = order.sample(sorted(held), min(len(held), 50))
        index.apply(changes, gone)
        for entry in gone:
            held.pop(entry)
        for one in changes:
            held[one.entry] = (one.namespace, np.frombuffer(one.vector, "float16").astype("float32"))
    assert len(index) == len(held)
    for _ in range(10):
        query = chance.standard_normal(24).astype("float32")
        query /= np.linalg.norm(query)
        near = index.nearest(query, lambda name: name != "n1", ["e1"], 5)
        wanted = sorted(
            (entry for entry, (space, _) in held.items() if space != "n1"), key=lambda entry: -held[entry][1] @ query
        )[:5]
        assert {one.id for one in near} - {"e1"} >= set(wanted) - {"e1"}
        assert all(abs(one.cosine - float(held[one.id][1] @ query)) < 1e-3 for one in near)


@given(st.text(alphabet="ab \n", max_size=4_000))
@settings(max_examples=60, deadline=None)
def test_parts_cover_the_whole_text(text: str) -> None:
    parts = split_parts(text)
    assert all(len(part) <= PART for part in parts)
    joined = parts[0]
    for part in parts[1:]:
        assert joined.endswith(part[:OVERLAP])
        joined += part[OVERLAP:]
    assert joined == text


def test_terms_are_names_and_codes_whole_and_in_parts() -> None:
    assert find_terms("The invoice INV-2024-0117 of Petersen's, v3.14.2 (a 7)") == {
        *("invoice", "inv-2024-0117", "inv", "2024", "0117", "petersen", "v3.14.2", "v3", "14", "2", "7"),
    }
    assert find_terms("What is it about?") == set()
    assert find_terms("ÄRGER Straße 東京") == {"ärger", "strasse", "東京"}
