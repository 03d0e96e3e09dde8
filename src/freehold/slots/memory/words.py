"""The words of a text that can be looked up exactly: names, codes, numbers. Common words are left out."""

import math
import re
from collections.abc import Iterable, Mapping

MAX_TERM = 80
MAX_TERMS = 400
MAX_QUERY_TERMS = 30
MAX_COUNTED = 2_000
"""Entries with a word are counted up to this. A word with more is not rare."""
_TOKEN = re.compile(r"\w+(?:[-._/:@+#&]\w+)*")
_JOINTS = re.compile(r"[-._/:@+#&]")
_COMMON = frozenset(
    re.split(
        r"\s+",
        """\
a about after all also am an and any are as at be because been before being both but by can could did do does
doing for from get got had has have he her here him his how i if in into is it its just know let like make
many may me might more most much must my no not now of off on one only or other our out over own say see shall
she should so some such than that the their them then there these they thing this those to too under until up
us use used very was way we were what when where which while who whom whose why will with would you your""",
    )
)


def find_terms(text: str) -> set[str]:
    """Each word once, in one case. What is joined, such as `INV-2024-17`, is a term as a whole and in its parts."""
    found: set[str] = set()
    for token in _TOKEN.findall(text.casefold()):
        parts = _JOINTS.split(token)
        if len(parts) > 1:
            found.add(token[:MAX_TERM])
        found.update(part[:MAX_TERM] for part in parts if _is_telling(part))
        if len(found) >= MAX_TERMS:
            break
    return found


def _is_telling(word: str) -> bool:
    return (len(word) > 1 or word.isdigit() or not word.isascii()) and word not in _COMMON


def choose_query_terms(query: str) -> list[str]:
    """The terms to look up; of a very long question the longest, which tell the most."""
    return sorted(sorted(find_terms(query), key=lambda term: (-len(term), term))[:MAX_QUERY_TERMS])


def weigh_terms(counts: Mapping[str, int], entries: int) -> dict[str, float]:
    """How much each term tells: the rarer, the more. One that no entry has counts too, so that a question in other
    words gives little to the one word that happens to be the same."""
    most = min(max(entries, 1), MAX_COUNTED)
    return {term: math.log(1 + (most - count + 0.5) / (count + 0.5)) for term, count in counts.items()}


def share_of(terms: Iterable[str], weights: Mapping[str, float]) -> float:
    """The part of what all terms tell that these terms tell: 0 to 1."""
    total = sum(weights.values())
    return sum(weights.get(term, 0.0) for term in terms) / total if total else 0.0
