"""`freehold build` and its verbs, with packages made here: nothing is fetched, and a small tar stands for Debian."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from freehold.errors import FreeholdError
from freehold.images import brain, build, resolution
from freehold.images.brain import check_known, hash_brain_request
from freehold.images.cli import command
from freehold.images.layer import write_layer
from freehold.images.lock import EPOCH, ImageLock, LockedPackage, read_lock
from freehold.images.pool import PackagePool
from freehold.images.resolution import hash_request
from freehold.images.section import ImageSection

PYTHON = LockedPackage("deb", "python3", "3.11.2-1+b1", "python3_3.11.2-1+b1_amd64.deb", "0" * 64, 1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose package sources are a number that goes up."""
    (tmp_path / "freehold.toml").write_text("")
    versions = iter(range(1, 9))

    def choose(request: str, pool: PackagePool) -> ImageLock:
        version = next(versions)
        (tmp_path / "package").write_text(f"content {version}")
        digest, size = pool.add(tmp_path / "package")
        tool = LockedPackage("deb", "tool", f"{version}.0", f"tool_{version}.0_all.deb", digest, size)
        return ImageLock("bookworm", "amd64", request, ("tool",), (PYTHON, tool))

    def install(lock: ImageLock, pool: PackagePool, target: Path) -> None:
        with write_layer(target, EPOCH) as layer:
            for package in lock.of_kind("deb")[1:]:
                layer.add_file(f"/usr/share/{package.name}", pool.open_checked(package).read_bytes())

    monkeypatch.setattr(resolution, "choose_packages", lambda section, pool, *_: choose(hash_request(section), pool))
    monkeypatch.setattr(brain, "choose_brain_packages", lambda suite, pool, *_: choose(hash_brain_request(suite), pool))
    monkeypatch.setattr(build, "install_debs", install)
    return tmp_path


def run(home: Path, *words: str) -> Result:
    return CliRunner().invoke(command, [*words, "--home", str(home)])


def failure(home: Path, *words: str) -> FreeholdError:
    result = run(home, *words)
    assert isinstance(result.exception, FreeholdError), result.output
    return result.exception


def test_the_first_build_writes_a_lock_and_the_next_gives_the_same_bytes(home: Path) -> None:
    assert run(home).exit_code == 0
    lock = (home / "freehold.lock").read_bytes()
    first = json.loads((home / "images/current/image.json").read_text())
    assert run(home).exit_code == 0
    assert json.loads((home / "images/current/image.json").read_text()) == first
    assert (home / "freehold.lock").read_bytes() == lock
    assert run(home, "verify").exit_code == 0
    builds = [path for path in (home / "images").iterdir() if path.is_dir() and not path.is_symlink()]
    assert len(builds) == 2, "the pool and the current build; the older one is gone"


def test_a_new_lock_shows_what_changes_and_forgets_the_old_packages(home: Path) -> None:
    run(home)
    shown = run(home, "lock").stdout
    assert [line.split() for line in shown.splitlines()[:-1]] == [["deb", "tool", "1.0", "2.0"]]
    assert len(list((home / "images/pool").iterdir())) == 1
    assert failure(home, "verify").code == "image.changed", "the lock is another one than was built"
    assert run(home).exit_code == 0
    assert json.loads(run(home, "lock", "--json").stdout)["changes"][0]["after"] == "3.0"


def test_a_changed_section_is_not_built_from_the_old_lock(home: Path) -> None:
    run(home)
    (home / "freehold.toml").write_text('[image]\npackages = ["git"]\n')
    refused = failure(home)
    assert (refused.code, "freehold build lock" in refused.hint) == ("image.changed", True)
    assert run(home, "lock").exit_code == 0
    assert run(home).exit_code == 0
    lock = read_lock(home / "freehold.lock")
    assert lock is not None
    assert lock.request == hash_request(ImageSection(packages=("git",)))


def test_the_image_of_freehold_itself_has_its_own_lock_and_shares_the_pool(home: Path) -> None:
    run(home)
    assert run(home, "--brain").exit_code == 0
    assert run(home, "verify", "--brain").exit_code == 0
    assert sorted(path.name for path in (home / "images/brain/current").iterdir()) == [
        "image.json",
        "image.tar",
        "sbom.cdx.json",
    ]
    assert run(home, "lock").exit_code == 0
    assert run(home).exit_code == 0
    assert run(home, "--brain").exit_code == 0, "a new lock of the one keeps the packages of the other"
    assert run(home, "verify", "--brain").exit_code == 0, "and a build of the one keeps that of the other"
    wrong = run(home, "--brain", "verify")
    assert (wrong.exit_code, "freehold build verify --brain" in wrong.output) == (2, True)


def test_a_damaged_package_of_the_pool_is_replaced_by_a_new_lock(home: Path, tmp_path: Path) -> None:
    pool = PackagePool(tmp_path / "pool")
    (tmp_path / "file").write_bytes(b"content")
    digest, _ = pool.add(tmp_path / "file")
    (pool.folder / digest).write_bytes(b"planted")
    pool.add(tmp_path / "file")
    assert (pool.folder / digest).read_bytes() == b"content"


def test_a_dependency_that_freehold_was_not_tested_with_is_refused() -> None:
    wheel = LockedPackage("wheel", "six", "1.17.0", "six-1.17.0-py3-none-any.whl", "b" * 64, 20)
    check_known([wheel], f"six==1.17.0 \\\n    --hash=sha256:{'b' * 64}\n")
    with pytest.raises(FreeholdError, match=r"six-1\.17\.0.* has the hash bbbbbbbbbbbb") as caught:
        check_known([wheel], f"six==1.17.0 \\\n    --hash=sha256:{'c' * 64}\n")
    assert caught.value.code == "image.tampered"


def test_no_file_takes_the_place_of_a_link_of_debian(home: Path) -> None:
    """A folder /bin would hide /usr/bin, and with it the shell."""
    (home / "tool").write_text("")
    (home / "freehold.toml").write_text(f'[image.files]\n"/bin/tool" = "{home}/tool"\n')
    assert "/bin is a link to /usr/bin" in str(failure(home))
    (home / "freehold.toml").write_text(f'[image.files]\n"/usr/local/bin/tool" = "{home}/tool"\n')
    assert run(home).exit_code == 0
