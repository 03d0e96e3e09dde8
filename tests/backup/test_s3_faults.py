"""A slow, failing, full or lying S3: what may pass is tried again, what does not is told, and nothing is lost."""

import contextlib
import email.utils
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree
from tests.support.s3 import Fault, FaultyS3, S3Server

from freehold.backup.stores.contract import ObjectExists
from freehold.backup.stores.s3 import TRIES, S3Store
from freehold.errors import FreeholdError

pytestmark = pytest.mark.shared_processes


@pytest.fixture
def faulty(s3: S3Server) -> Iterator[FaultyS3]:
    with FaultyS3(s3.port).run() as proxy:
        yield proxy


@pytest.fixture
def weak(s3: S3Server, faulty: FaultyS3, tmp_path: Path) -> Iterator[S3Store]:
    """The store as it is seen through the proxy."""
    with contextlib.closing(S3Store(s3.place(tmp_path.name, faulty.port), timeout=60.0, pause=0.001)) as store:
        yield store


@pytest.fixture
def sound(s3: S3Server, tmp_path: Path) -> Iterator[S3Store]:
    with contextlib.closing(S3Store(s3.place(tmp_path.name))) as store:
        yield store


@pytest.mark.parametrize("fault", [500, 503, 429, "cut"])
def test_a_store_that_fails_every_other_time_loses_nothing(
    small_home: BackupHome, faulty: FaultyS3, weak: S3Store, sound: S3Store, tmp_path: Path, fault: Fault
) -> None:
    faulty.decide = lambda method, path, number: fault if number % 2 else "none"
    small_home.set_up(weak)
    assert small_home.back_up(weak).number == 1
    add_events(small_home.home, 1)
    assert small_home.back_up(weak).number == 2
    restored = small_home.restore(weak, tmp_path / "restored")
    assert describe_tree(restored / "workspace") == describe_tree(small_home.home.workspace)
    assert describe_tree(small_home.restore(sound, tmp_path / "sound") / "pods") == describe_tree(small_home.home.pods)


def test_an_answer_that_got_lost_does_not_make_our_own_object_a_foreign_one(faulty: FaultyS3, weak: S3Store) -> None:
    """The object was created, the answer was cut off: the second try sees it, and that it is ours."""
    faulty.decide = lambda method, path, number: "cut" if number == 0 else "none"
    weak.create("meta/lease/1", b"mine")
    assert [method for method, _ in faulty.seen] == ["PUT", "PUT", "GET"]
    with pytest.raises(ObjectExists):
        weak.create("meta/lease/1", b"another")


def test_a_store_that_is_down_is_told_after_some_tries(faulty: FaultyS3, weak: S3Store) -> None:
    faulty.decide = lambda method, path, number: 503
    with pytest.raises(FreeholdError) as caught:
        weak.get("key.age")
    assert caught.value.code == "backup.unreachable"
    assert len(faulty.seen) == TRIES


def test_a_store_that_hangs_is_not_waited_for_for_ever(s3: S3Server, faulty: FaultyS3) -> None:
    faulty.decide = lambda method, path, number: "hang" if number < 1 else "none"
    with contextlib.closing(S3Store(s3.place("hung", faulty.port), timeout=0.2, pause=0.001)) as store:
        store.put("packs/ab", b"content")
    assert len(faulty.seen) >= 2  # more on a busy machine


def test_a_full_bucket_is_told_and_the_next_backup_goes_on(
    small_home: BackupHome, faulty: FaultyS3, weak: S3Store, tmp_path: Path
) -> None:
    small_home.set_up(weak)
    small_home.back_up(weak)
    (small_home.home.workspace / "more.txt").write_text("more")
    faulty.decide = lambda method, path, number: 507 if method == "PUT" and "/packs/" in path else "none"
    with pytest.raises(FreeholdError) as caught:
        small_home.back_up(weak)
    assert caught.value.code == "backup.full"
    assert small_home.restore(weak, tmp_path / "before").joinpath("freehold.toml").exists()
    faulty.decide = lambda method, path, number: "none"
    assert small_home.back_up(weak).number == 2
    assert (small_home.restore(weak, tmp_path / "after") / "workspace" / "more.txt").read_text() == "more"


def test_a_refusal_is_not_tried_again(faulty: FaultyS3, weak: S3Store) -> None:
    faulty.decide = lambda method, path, number: 403
    with pytest.raises(FreeholdError) as caught:
        weak.put("packs/ab", b"")
    assert caught.value.code == "backup.refused"
    assert len(faulty.seen) == 1


def test_a_wrong_clock_of_this_machine_does_no_harm(
    s3: S3Server, sound: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests are signed with the time of the store, which it tells in each answer, also in a refusal."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 5 * 86_400)
    with contextlib.closing(S3Store(s3.place("skewed"), pause=0.001)) as store:
        store.put("packs/ab", b"content")
        assert store.get("packs/ab") == b"content"
        (found,) = store.list_objects("packs/")
        assert abs(store.read_clock() - found.modified) < 300


def test_the_clock_of_the_store_is_read_from_its_answers(faulty: FaultyS3, weak: S3Store) -> None:
    faulty.date = email.utils.formatdate(time.time() + 7200, usegmt=True)
    faulty.decide = lambda method, path, number: 404
    list_error = pytest.raises(FreeholdError)
    with list_error:
        list(weak.list_objects("meta/"))
    assert 7100 < weak.read_clock() - time.time() < 7300


@pytest.mark.parametrize(
    "listing",
    [
        b"not xml",
        b'<!DOCTYPE x [<!ENTITY a "b">]><ListBucketResult>&a;</ListBucketResult>',
        b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
    ],
)
def test_a_listing_that_is_no_listing_is_refused(weak: S3Store, listing: bytes) -> None:
    with pytest.raises(FreeholdError) as caught:
        weak._read_listing(listing)
    assert caught.value.code == "backup.refused"


def test_foreign_names_in_a_listing_are_left_out(weak: S3Store, tmp_path: Path) -> None:
    names = ["packs/ab", "../../etc/passwd", "packs/../x", "packs/A", "/packs/ab", ""]
    items = "".join(
        f"<Contents><Key>{tmp_path.name}/{name}</Key><Size>1</Size><LastModified>x</LastModified></Contents>"
        for name in names
    )
    found, token = weak._read_listing(f"<ListBucketResult>{items}</ListBucketResult>".encode())
    assert ([one.name for one in found], token) == (["packs/ab"], None)
