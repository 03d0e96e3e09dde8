"""The order of what was found: nearness of meaning first, with a share for rare exact words.

Measured by `bench/memory.py`: mixing the two as equals is worse than meanings alone, because a question in other words
shares only its less telling words with the answer. So the share counts by its third power: most of the words tell a
name or a code, a few of them tell nothing.
"""

from collections.abc import Mapping, Sequence

from freehold.slots.memory.contract import MemoryMatch
from freehold.slots.memory.lookup import FoundMemory, WordCounts
from freehold.slots.memory.words import share_of, weigh_terms

WORD_SHARE = 0.2
"""How much all words of the question weigh beside the cosine of the meanings."""
MIN_SCORE = 0.18
"""Below it a memory does not answer the question."""
MIN_WORD_SHARE = 0.3
"""Where only words can be compared, the part of them that an answer has."""


def rank_memories(
    found: Sequence[FoundMemory], cosines: Mapping[str, float] | None, counts: WordCounts, limit: int
) -> list[MemoryMatch]:
    """The best first; only those that may answer the question. `cosines` is None where only words can be compared."""
    weights = weigh_terms(counts.counts, counts.entries)
    matches = []
    for one in found:
        share = share_of(one.terms, weights)
        if cosines is None or one.memory.id not in cosines:
            score, least = share, MIN_WORD_SHARE
        else:
            score, least = cosines[one.memory.id] + WORD_SHARE * share**3, MIN_SCORE
        if score >= least:
            matches.append(MemoryMatch(one.memory, round(score, 4), one.terms))
    matches.sort(key=lambda match: (-match.score, match.memory.id))
    return matches[:limit]
