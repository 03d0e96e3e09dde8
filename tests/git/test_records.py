"""What git prints is read with bounds, whatever an agent wrote into the repository."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import FreeholdError
from freehold.git.records import MAX_FILES, GitChange, parse_log, parse_status, parse_worktrees
from freehold.git.ref_update import RefUpdate, RefUpdateCheck
from freehold.git.remote_address import parse_remote

COMMIT = "a" * 40
STATUS = (
    b"# branch.oid " + COMMIT.encode() + b"\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0"
    b"1 M. N... 100644 100644 100644 1 2 a b.txt\0"
    b"2 R. N... 100644 100644 100644 1 2 R100 new\nname\0old \xff\0"
    b"u UU N... 100644 100644 100644 100644 1 2 3 both.txt\0"
    b"? unknown\0"
)


def test_a_status_is_read_with_names_of_any_bytes() -> None:
    found = parse_status(STATUS, is_cut=False)
    assert (found.commit, found.branch, found.upstream, found.ahead, found.behind) == (
        COMMIT,
        "main",
        "origin/main",
        2,
        1,
    )
    assert found.files == [
        GitChange("a b.txt", "M", ""),
        GitChange("new\\x0aname", "R", "", "old \\xff"),
        GitChange("both.txt", "", "U", has_conflict=True),
        GitChange("unknown", "", "?"),
    ]


def test_more_files_than_a_page_shows_are_told() -> None:
    found = parse_status(b"? x\0" * (MAX_FILES + 1), is_cut=False)
    assert (len(found.files), found.is_cut) == (MAX_FILES, True)


@given(st.binary(max_size=300))
def test_no_output_breaks_the_reader(data: bytes) -> None:
    parse_status(data + b"\0", is_cut=True)
    list(parse_log(data))
    list(parse_worktrees(data, "/workspace"))


def line(text: bytes) -> bytes:
    return f"{len(text) + 4:04x}".encode() + text


def update(new: str = COMMIT, ref: str = "refs/heads/main") -> bytes:
    return line(f"{'0' * 40} {new} {ref}\0 report-status\n".encode())


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_the_one_update_passes_in_pieces_of_any_size(size: int) -> None:
    check = RefUpdateCheck(RefUpdate(COMMIT, "main"))
    whole = line(b"shallow " + b"b" * 40) + update() + b"0000" + b"PACK" + bytes(100)
    passed = b"".join(check.receive(whole[at : at + size]) for at in range(0, len(whole), size))
    assert passed == whole
    assert check.is_checked


@pytest.mark.parametrize(
    "push",
    [
        update("b" * 40),
        update("0" * 40),
        update(ref="refs/heads/other"),
        update(ref="refs/tags/main"),
        update() + update(ref="refs/heads/other"),
        update() + update(),
        line(b"push-cert\0"),
        line(b"nonsense"),
        b"zzzz",
        b"0001",
        b"ffff",
        b"0004",
    ],
)
def test_every_other_push_is_refused_before_a_byte_is_sent_on(push: bytes) -> None:
    check = RefUpdateCheck(RefUpdate(COMMIT, "main"))
    with pytest.raises(FreeholdError, match="something else"):
        check.receive(push + b"0000PACK")
    assert not check.is_checked


def test_a_probe_of_four_bytes_passes_and_allows_nothing() -> None:
    check = RefUpdateCheck(RefUpdate(COMMIT, "main"))
    assert check.receive(b"0000") == b"0000"
    with pytest.raises(FreeholdError, match="something else"):
        check.receive(update() + b"0000PACK")


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("https://github.com/o/r.git", "git-github.com"),
        ("https://GitHub.com:8443/o/r", "git-github.com-8443"),
        ("http://127.0.0.1:3001/o/r", "git-127.0.0.1-3001"),
    ],
)
def test_an_address_has_the_secret_of_its_host(url: str, secret: str) -> None:
    found = parse_remote(url)
    assert found is not None
    assert found.secret == secret


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:o/r.git",
        "ssh://git@github.com/o/r",
        "/srv/r.git",
        "http://github.com/o/r",
        "https://user:password@github.com/o/r",
        "https://github.com@evil.example/o/r",
        "https://github.com/o/../x",
        "https://github.com/o/r?x",
        "https://github.com/o r",
        "https://0x7f000001/r",
        "ext::sh -c id",
        "https://",
    ],
)
def test_an_address_that_has_two_readings_gets_no_credentials(url: str) -> None:
    assert parse_remote(url) is None
