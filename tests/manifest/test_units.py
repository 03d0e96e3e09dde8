"""Sizes and durations."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.manifest.units import parse_moments, parse_seconds, parse_size, show_seconds, show_size, split_command


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0),
        ("512MiB", 512 * 1024**2),
        ("4GiB", 4 * 1024**3),
        ("4 gib", 4 * 1024**3),
        ("1.5GiB", 3 * 1024**3 // 2),
        ("1GB", 10**9),
        ("1kB", 1000),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "4", "GiB", "-1GiB", "4 GiB 2", "4Gi", "1e9B", "٤GiB", "4GiB\n4GiB", "9" * 400 + "GiB"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("30s", 30), ("10m", 600), ("24h", 86400), ("7d", 604800), ("1.5h", 5400), ("2w", 1209600)],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_seconds(text) == seconds
    assert isinstance(parse_seconds(text), int)


def test_fractions_only_where_they_make_sense() -> None:
    assert parse_moments("750ms") == 0.75
    with pytest.raises(ValueError, match="whole number of seconds"):
        parse_seconds("750ms")


@pytest.mark.parametrize("value", [2**61, "2000000TiB", "9999999999999999999TiB"])
def test_sizes_end_before_machines_count_wrongly(value: object) -> None:
    with pytest.raises(ValueError, match="is more than"):
        parse_size(value)


@pytest.mark.parametrize("value", [2**61, "36501d", "9999999999999999999w", float("inf")])
def test_durations_end_before_clocks_count_wrongly(value: object) -> None:
    with pytest.raises(ValueError, match="is more than"):
        parse_seconds(value)


def test_numbers_pass_through() -> None:
    assert (parse_size(5), parse_seconds(5), parse_moments(0.5)) == (5, 5, 0.5)


@settings(deadline=None)
@given(st.integers(0, 2**60))
def test_a_shown_size_reads_back(size: int) -> None:
    assert parse_size(show_size(size)) == size


@settings(deadline=None)
@given(st.integers(0, 10**9))
def test_a_shown_duration_reads_back(seconds: int) -> None:
    assert parse_seconds(show_seconds(seconds)) == seconds


def test_commands_are_words() -> None:
    assert split_command('npm run "my script"') == ("npm", "run", "my script")
    assert split_command(["a", "b c"]) == ["a", "b c"]
