"""Does the privacy filter find what is private, and leave alone what only looks alike? And what does it cost?

The texts are in bench/data/privacy_texts.txt; they are not those of the tests. Beside them are made-up ones, with
random values of each form, that the filter was not written by.
"""

import base64
import hashlib
import random
import statistics
import string
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.harness import Figure, main, median_of
from freehold.observe.secrets import mask_secrets
from freehold.slots.privacy.detectors import KINDS, find_private, passes_luhn

RECALL_AIM, PRECISION_AIM = 0.97, 0.97
LARGE = 64 * 1024
COST_AIM, HOSTILE_AIM = 60.0, 300.0
"""Milliseconds for 64 KiB: of prose, and of what is made to take long."""


def read_texts() -> Iterator[tuple[str, str, str]]:
    """The kind, the text without marks, and what is private in it."""
    for line in (Path(__file__).parent / "data/privacy_texts.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        kind, _, text = line.partition(" | ")
        before, mark, rest = text.partition("«")
        value, _, after = rest.partition("»")
        yield kind, before + value + after, value if mark else ""


def make_texts(count: int) -> Iterator[tuple[str, str, str]]:
    """The same each time. Half of them are private."""
    chance = random.Random(11)
    frames = ("Please note {} for later", "x = {}", "{} is the one", "see {}, thanks", "({})", "old: {}; new: none")
    for number in range(count):
        kind, value = (_make_private if number % 2 else _make_alike)(chance)
        yield kind, chance.choice(frames).format(value), value if kind != "-" else ""


def _digits(chance: random.Random, count: int) -> str:
    return "".join(chance.choice("0123456789") for _ in range(count))


def _make_private(chance: random.Random) -> tuple[str, str]:
    letters = string.ascii_letters + string.digits
    word = "".join(chance.choice(string.ascii_lowercase) for _ in range(chance.randrange(3, 9)))
    choices: dict[str, Callable[[], str]] = {
        "secret": lambda: "".join(chance.choice(letters) for _ in range(chance.randrange(24, 48))),
        "mail": lambda: (
            f"{word}{chance.choice('._-')}{word[::-1]}@{word}.{chance.choice(['com', 'org', 'de', 'co.uk'])}"
        ),
        "phone": lambda: chance.choice(["+49 1{0} {1}", "+1-{2}-{2}-{3}", "({2}) {2}-{3}", "+44{4}"]).format(
            _digits(chance, 2),
            _digits(chance, 8),
            *(f"{chance.randrange(200, 999)}", _digits(chance, 4), _digits(chance, 10)),
        ),
        "card": lambda: _with_check_digit(f"4{_digits(chance, 14)}"),
        "iban": lambda: _with_iban_check(f"{_digits(chance, 18)}"),
    }
    kind = chance.choice(list(choices))
    return kind, choices[kind]()


def _make_alike(chance: random.Random) -> tuple[str, str]:
    seed = _digits(chance, 12).encode()
    choices: tuple[Callable[[], str], ...] = (
        lambda: hashlib.new(
            chance.choice(["md5", "sha1", "sha256", "sha512"]), seed, usedforsecurity=False
        ).hexdigest(),
        lambda: str(uuid.UUID(int=chance.getrandbits(128))),
        lambda: (
            ".".join(str(chance.randrange(40)) for _ in range(chance.randrange(2, 5)))
            + chance.choice(["", "-rc.1", "+g1a2b3c"])
        ),
        lambda: (
            f"20{_digits(chance, 2)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}T10:20:{_digits(chance, 2)}Z"
        ),
        lambda: f"{chance.choice(['OPS', 'INV', 'REQ'])}-{_digits(chance, chance.randrange(3, 8))}",
        lambda: ".".join(str(chance.randrange(256)) for _ in range(4)) + f":{chance.randrange(1024, 65535)}",
        lambda: f"1{_digits(chance, chance.choice([9, 12]))}",
        lambda: (
            "".join(w.title() for w in chance.sample(["http", "request", "handler", "factory", "proxy", "cache"], 4))
            + "2"
        ),
        lambda: "_".join(chance.sample(["test", "never", "follows", "planted", "link", "again", "twice"], 5)),
        lambda: (
            "/".join(chance.sample(["src", "web", "docs", "features", "slots", "memory"], 4))
            + f"/file{_digits(chance, 2)}.py"
        ),
        lambda: f"0x{chance.getrandbits(64):x}",
        lambda: f"did:plc:{base64.b32encode(seed * 2).decode().lower()[:24]}",
        lambda: f"sha512-{base64.b64encode(hashlib.sha512(seed).digest()).decode()}",
    )
    return "-", chance.choice(choices)()


def _with_check_digit(digits: str) -> str:
    return next(digits + last for last in "0123456789" if passes_luhn(digits + last))


def _with_iban_check(digits: str) -> str:
    return f"DE{98 - int(digits + '131400') % 97:02}{digits}"


def assess(texts: Sequence[tuple[str, str, str]]) -> tuple[Counter[str], Counter[str], int, int]:
    """How many of each kind were found and were there, how much was found wrongly, and in how many clean texts."""
    right: Counter[str] = Counter()
    wrong = disturbed = 0
    for kind, text, value in texts:
        found = find_private(text)
        hit = [one for one in found if one.kind == kind and (one.value == value or not value)]
        right[kind] += bool(hit)
        wrong += len(found) - len(hit)
        disturbed += kind == "-" and bool(found)
    return right, Counter(kind for kind, _, _ in texts if kind != "-"), wrong, disturbed


def measure(quick: bool) -> Iterator[Figure]:
    for name, texts in (("own", list(read_texts())), ("made-up", list(make_texts(400 if quick else 4_000)))):
        right, wanted, wrong, disturbed = assess(texts)
        total, clean = wanted.total(), sum(kind == "-" for kind, _, _ in texts)
        masked = sum(mask_secrets(text) != text for kind, text, _ in texts if kind != "-")
        hits = sum(right[kind] for kind in KINDS)
        recall, precision = hits / total, hits / (hits + wrong)
        yield Figure(
            f"recall, {total} {name} texts",
            recall,
            "",
            "masking of logs",
            masked / total,
            f"at least {RECALL_AIM}",
            recall >= RECALL_AIM,
        )
        for kind in KINDS:
            if wanted[kind]:
                yield Figure(f"recall, {kind}, {wanted[kind]} {name} texts", right[kind] / wanted[kind], "")
        aim = f"at least {PRECISION_AIM}"
        yield Figure(f"precision, {len(texts)} {name} texts", precision, "", "", None, aim, precision >= PRECISION_AIM)
        yield Figure(f"disturbed, of {clean} {name} texts that look alike", disturbed, "texts")
    times = 5 if quick else 30
    prose = ("The quick brown fox asks lena about ticket OPS-2291 of 2024-01-17, see docs/guides/slots.md. " * 800)[
        :LARGE
    ]
    for name, text in (
        ("prose", prose),
        ("digits", "4111 1111 2222 3333 " * (LARGE // 20)),
        ("base64", "aGVsbG8gd29ybGQh" * (LARGE // 16)),
    ):
        cost = median_of(lambda text=text: find_private(text), times) * 1000  # type: ignore[misc]
        peer = median_of(lambda text=text: mask_secrets(text), times) * 1000  # type: ignore[misc]
        yield Figure(
            f"cost of 64 KiB of {name}",
            cost,
            "ms",
            "masking of logs",
            peer,
            f"at most {COST_AIM:g} ms",
            cost <= COST_AIM,
        )
    short = statistics.median([median_of(lambda: find_private(texts[0][1]), 20) for _ in range(times)]) * 1000
    yield Figure("cost of a sentence", short, "ms")


if __name__ == "__main__":
    main(__doc__ or "", measure)
