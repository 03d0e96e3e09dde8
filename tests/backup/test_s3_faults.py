"""A slow, failing, full or lying S3: what may pass is tried again, what does not is told, and nothing is lost."""

import contextlib
import email.utils
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree
from tests.support.s3 import Fault, FaultyS3, S3Server

from freehold.backup.recovery_key import make_recovery_key
from freehold.backup.stores import s3 as s3_store
from freehold.backup.stores.contract import ObjectExists
from freehold.backup.stores.s3 import TRIES, S3Store
from freehold.egress.vault import Vault
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


@pytest.mark.parametrize("fault", [500, 503, 429, "cut", "slow"])
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
    with contextlib.closing(S3Store(s3.place("hung", faulty.port), timeout=2.0, pause=0.001)) as store:
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


REFUSALS_OF_CONDITIONS = [(501, "NotImplemented"), (400, "NotImplemented"), (409, "NotImplemented"), (501, "")]


@pytest.mark.parametrize("refusal", REFUSALS_OF_CONDITIONS)
def test_a_store_that_refuses_conditional_writes_is_named_at_once(
    small_home: BackupHome, faulty: FaultyS3, weak: S3Store, refusal: tuple[int, str]
) -> None:
    """It stays so: nothing is tried again, and nothing is left there."""
    faulty.conditions = refusal
    with pytest.raises(FreeholdError) as caught:
        small_home.set_up(weak)
    assert caught.value.code == "backup.no-conditions"
    assert f"does not support conditional writes ({' '.join(map(str, refusal)).strip()})" in caught.value.message
    assert [method for method, _ in faulty.seen] == ["DELETE", "PUT"]
    assert list(weak.list_objects("")) == []


def test_no_recovery_key_is_shown_for_a_store_without_conditional_writes(
    s3: S3Server, small_home: BackupHome, faulty: FaultyS3
) -> None:
    faulty.conditions = (501, "NotImplemented")
    place = s3.place("unconditional", faulty.port)
    home = small_home.home
    home.manifest.write_text(
        f'[backup]\nto = "s3://{place.bucket}/{place.prefix}"\nendpoint = "{place.endpoint}"\n'
        f'user = "{place.key.access_key}"\nkey = "secret:backup"\n'
    )
    Vault(home.vault).set("backup", place.key.secret)
    shown: list[str] = []
    with pytest.raises(FreeholdError) as caught:
        make_recovery_key(home, lambda key: shown.append(key))
    assert caught.value.code == "backup.no-conditions"
    assert shown == []


def test_what_a_store_has_not_implemented_is_not_tried_again(faulty: FaultyS3, weak: S3Store) -> None:
    """Without a condition in the request it is not the condition that is missing."""
    faulty.decide = lambda method, path, number: 501
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
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'.encode("utf-16"),
    ],
)
def test_a_listing_that_is_no_listing_is_refused(weak: S3Store, listing: bytes) -> None:
    with pytest.raises(FreeholdError) as caught:
        weak._read_listing(listing)
    assert caught.value.code == "backup.refused"


def test_foreign_names_in_a_listing_are_left_out(weak: S3Store, tmp_path: Path) -> None:
    names = ["packs/ab", "packs/a..b", "../../etc/passwd", "packs/../x", "packs/A", "/packs/ab", ""]
    items = "".join(
        f"<Contents><Key>{tmp_path.name}/{name}</Key><Size>1</Size><LastModified>x</LastModified></Contents>"
        for name in names
    )
    found, token = weak._read_listing(f"<ListBucketResult>{items}</ListBucketResult>".encode())
    assert ([one.name for one in found], token) == (["packs/ab"], None)


@pytest.mark.parametrize("size", ["²", "-1", "", "9" * 5000, "1e3"])
def test_an_object_without_a_size_is_left_out(weak: S3Store, tmp_path: Path, size: str) -> None:
    item = f"<Contents><Key>{tmp_path.name}/packs/ab</Key><Size>{size}</Size></Contents>"
    assert weak._read_listing(f"<ListBucketResult>{item}</ListBucketResult>".encode()) == ([], None)


@pytest.mark.parametrize(
    "date", ["Mon, 01 Jan 999999999 00:00:00 GMT", "Mon, 01 Jan 2020 00:00:00 +99999999999999999999", "yesterday"]
)
def test_a_date_that_does_not_exist_is_ignored(faulty: FaultyS3, weak: S3Store, date: str) -> None:
    faulty.date = date
    weak.put("packs/ab", b"content")
    assert weak.get("packs/ab") == b"content"
    assert abs(weak.read_clock() - time.time()) < 1


@pytest.mark.parametrize("tokens", [["same"], ["one", "other"]])
def test_a_listing_that_never_ends_is_given_up(
    weak: S3Store, monkeypatch: pytest.MonkeyPatch, tokens: list[str]
) -> None:
    """A store that hangs a backup for ever would not be noticed: nothing fails."""
    turns = itertools.cycle(tokens)
    monkeypatch.setattr(s3_store, "MAX_PAGES", 10)
    monkeypatch.setattr(weak, "_read_listing", lambda content: ([], next(turns)))
    with pytest.raises(FreeholdError, match="does not end"):
        list(weak.list_objects("packs/"))
