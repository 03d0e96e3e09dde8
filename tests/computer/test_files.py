import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from freehold.computer import Computer, Limits
from freehold.errors import FreeholdError

ODD_NAMES = [
    "new\nline",
    "tab\t",
    " lead",
    "-rf",
    "\udcff\udcfe",
    "ünï",
    "x" * 255,
    "'\"$`\\",
    "\u2028",
    "*",
    "a:b",
    "...",
]


async def refusal(call: object) -> str:
    with pytest.raises(FreeholdError) as caught:
        await call  # type: ignore[misc]
    return caught.value.code


async def test_what_is_written_is_read(computer: Computer) -> None:
    files = computer.files
    assert await files.write("a.txt", "text") == 4
    assert await files.read("a.txt") == b"text"
    assert await files.read("/workspace/a.txt") == b"text"
    assert await files.read_text(b"a.txt") == "text"
    assert await files.append("a.txt", b" and more") == 9
    assert await files.read("a.txt", offset=5, length=3) == b"and"
    assert await files.read("a.txt", offset=100) == b""
    assert (await computer.run("cat a.txt")).stdout == b"text and more"


async def test_large_contents_both_ways(computer: Computer) -> None:
    content = os.urandom(5_000_000)
    await computer.files.write("large", content)
    assert await computer.files.read("large") == content
    assert await computer.files.read("large", offset=1_000_000, length=3_000_000) == content[1_000_000:4_000_000]
    assert b"".join([piece async for piece in computer.files.stream("large")]) == content
    assert await refusal(computer.files.read("large", limit=4_999_999)) == "files.too-large"
    assert await computer.files.read("large", limit=5_000_000) == content


async def test_contents_can_be_streamed_in(computer: Computer) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(100):
            yield bytes([number]) * 10_000

    assert await computer.files.write("streamed", pieces()) == 1_000_000
    assert len(await computer.files.read("streamed")) == 1_000_000


@pytest.mark.parametrize("existing", [True, False])
async def test_a_file_that_is_being_written_is_in_no_list(computer: Computer, existing: bool) -> None:
    if existing:
        await computer.files.write("upload", "old")
    seen: list[str] = []

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 200_000
            seen.extend(str(entry.name) for entry in await computer.files.list("."))

    assert await computer.files.write("upload", pieces()) == 600_000
    assert set(seen) == ({"upload"} if existing else set())
    assert [str(entry.name) for entry in await computer.files.list(".")] == ["upload"]


async def test_a_write_is_atomic(computer: Computer) -> None:
    """A reader sees the old or the new contents; a cancelled writer leaves the old contents and no temporary file."""
    files = computer.files
    await files.write("config", b"A" * 100_000)
    watch = "import sys\nwhile True:\n s = set(open('config').read())\n if len(s) != 1: print('torn', flush=True)\n print('.', flush=True)"
    async with await computer.spawn(["python3", "-c", watch]) as process:
        for letter in "BCDEFGH":
            await files.write("config", letter * 100_000)
            await process.stdout.read()
        process.terminate()
        assert b"torn" not in await process.stdout.read_all()

    begun = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield b"half"
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(files.write("config", stuck()))
    await begun.wait()
    await files.list()  # answered after the request to write has arrived
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [entry.name for entry in await files.list()] == ["config"]
    assert await files.read("config") == b"H" * 100_000


async def test_modes_are_kept_and_set(computer: Computer) -> None:
    files = computer.files
    await files.write("script", "#!/bin/sh\necho ran", mode=0o755)
    assert (await computer.run("./script")).stdout == b"ran\n"
    await files.write("script", "#!/bin/sh\necho again")
    assert (await files.stat("script")).mode == 0o755
    await files.chmod("script", 0o640)
    assert (await files.stat("script")).mode == 0o640
    assert await refusal(files.write("script", b"", exclusive=True)) == "files.exists"


async def test_each_error_has_its_code(computer: Computer) -> None:
    files = computer.files
    await files.mkdir("folder/below", parents=True)
    await files.write("file", b"")
    await computer.run("ln -s loop loop; mkdir shut; touch shut/x; chmod 0 shut; mkfifo pipe")
    assert await refusal(files.read("missing")) == "files.not-found"
    assert await refusal(files.read("folder")) == "files.is-a-folder"
    assert await refusal(files.write("folder", b"")) == "files.is-a-folder"
    assert await refusal(files.list("file")) == "files.not-a-folder"
    assert await refusal(files.read("file/x")) == "files.not-a-folder"
    assert await refusal(files.mkdir("folder")) == "files.exists"
    assert await refusal(files.remove("folder")) == "files.not-empty"
    assert await refusal(files.read("loop")) == "files.too-many-links"
    assert await refusal(files.list("shut")) == "files.permission"
    assert await refusal(files.write("/usr/x", b"")) in ("files.read-only", "files.permission")
    assert await refusal(files.read("y" * 256)) == "files.name-too-long"
    assert await refusal(files.read("a\0b")) == "computer.bad-request"
    assert await refusal(files.move("file", "folder/below")) == "files.exists"
    assert await refusal(files.remove("missing")) == "files.not-found"
    assert await refusal(files.copy("folder", "folder/inside")) == "files.bad-path"
    assert await refusal(files.search("(", regex=True)) == "files.bad-pattern"
    await files.remove("missing", missing_ok=True)


@pytest.mark.parametrize(
    "special", ["pipe", "/dev/zero", "/dev/tty", "/proc/self/environ", "/proc/1/mem", "/proc/self/fd/3"]
)
async def test_special_files_are_refused_without_blocking(computer: Computer, special: str) -> None:
    await computer.run("mkfifo pipe")
    await computer.run(["ln", "-s", special, "innocent.txt"])
    for path in (special, "innocent.txt"):
        for call in (computer.files.read(path), computer.files.append(path, b"x")):
            assert (await refusal(call)).startswith("files.")


async def test_links_are_not_followed(computer: Computer) -> None:
    files = computer.files
    await files.write("target", b"seen")
    await computer.run(
        "ln -s target link; ln -s /nowhere dangling; mkdir d; touch d/x; ln -s d dlink; ln -s /home/agent away"
    )
    assert await files.read("link") == b"seen"
    await files.write("link", b"new")
    assert await files.read("target") == b"new"
    assert (await files.stat("link")).kind == "file"
    assert (await files.stat("link", follow=False)).target == "target"
    assert await files.exists("dangling")
    assert "dlink/x" not in [entry.name for entry in await files.walk()]
    await computer.run("touch ~/precious")
    await files.remove("away", recursive=True)
    assert await files.exists("/home/agent/precious")
    await files.copy("dlink", "copied")
    assert (await files.stat("copied", follow=False)).kind == "link"


async def test_a_removal_does_not_follow_a_folder_swapped_for_a_link(computer: Computer) -> None:
    """A process swaps the folder for a link all the time; the target of the link stays complete."""
    await computer.run("mkdir ~/precious; touch ~/precious/a ~/precious/b; mkdir -p tree/victim; touch tree/victim/x")
    swap = "cd tree; while :; do mv victim v2; ln -s ~/precious victim; rm victim; mv v2 victim; mkdir -p victim; touch victim/x; done"
    async with await computer.spawn(swap):
        for _ in range(40):
            try:
                await computer.files.remove("tree/victim", recursive=True)
            except FreeholdError as error:
                assert error.code.startswith("files.")  # noqa: PT017 - whether it fails is the race's business
    assert {entry.name for entry in await computer.files.list("/home/agent/precious")} == {"a", "b"}


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: ascii(name)[:20])
async def test_any_name_works_everywhere(computer: Computer, name: str) -> None:
    files = computer.files
    await files.write(name, b"content")
    assert await files.read(os.fsencode(name)) == b"content"
    assert [entry.name for entry in await files.list()] == [name]
    assert [entry.name for entry in await files.walk()] == [name]
    assert [hit.path for hit in (await files.search("content")).hits] == [name]
    await files.mkdir("d")
    await files.move(name, f"d/{name}")
    await files.copy(f"d/{name}", name)
    assert (await files.stat(name)).name == name
    assert [entry.name for entry in await files.glob("*/*")] == ([] if name.startswith(".") else [f"d/{name}"])
    await files.remove(name)
    assert Path(os.fsdecode(os.fsencode(f"{name}"))).name == name
    assert (await computer.run(["cat", f"d/{name}"])).stdout == b"content"


async def test_walk_and_glob(computer: Computer) -> None:
    files = computer.files
    await files.write_many(
        dict.fromkeys(("a.py", "pkg/b.py", "pkg/sub/c.py", "pkg/sub/d.txt", ".hidden/e.py", "node_modules/f.py"), b"x")
    )
    names = [entry.name for entry in await files.walk(skip=["node_modules"])]
    assert names == [".hidden", "a.py", "pkg", ".hidden/e.py", "pkg/b.py", "pkg/sub", "pkg/sub/c.py", "pkg/sub/d.txt"]
    assert [entry.name for entry in await files.walk("pkg", depth=1)] == ["b.py", "sub"]
    assert len(await files.walk(limit=3)) == 3

    async def glob(pattern: str) -> list[str]:
        return [entry.name for entry in await files.glob(pattern)]

    assert await glob("*.py") == ["a.py"]
    assert await glob("**/*.py") == ["a.py", "node_modules/f.py", "pkg/b.py", "pkg/sub/c.py"]
    assert await glob("pkg/**") == ["pkg/b.py", "pkg/sub", "pkg/sub/c.py", "pkg/sub/d.txt"]
    assert await glob("pkg/*/[cd].*") == ["pkg/sub/c.py", "pkg/sub/d.txt"]
    assert await glob(".*/*.py") == [".hidden/e.py"]
    assert await glob("**/sub/*.t?t") == ["pkg/sub/d.txt"]
    assert await glob("nothing/*") == []


async def test_search(computer: Computer) -> None:
    files = computer.files
    await files.write_many(
        {
            "one.py": b"import os\nclass Alpha:\n    pass\n",
            "deep/two.txt": b"alpha beta\ngamma alpha\n",
            "binary": b"alpha\0",
            ".git/config": b"alpha",
        }
    )
    found = await files.search("alpha")
    assert [(hit.path, hit.line, hit.column, hit.text) for hit in found.hits] == [
        ("deep/two.txt", 1, 1, "alpha beta"),
        ("deep/two.txt", 2, 7, "gamma alpha"),
    ]
    assert not found.more
    assert len((await files.search("ALPHA", ignore_case=True)).hits) == 3
    assert [hit.path for hit in (await files.search(r"^class \w+:$", regex=True)).hits] == ["one.py"]
    assert [hit.path for hit in (await files.search("a", glob="*.py")).hits] == ["one.py"] * 2
    limited = await files.search("a", limit=2)
    assert len(limited.hits) == 2
    assert limited.more
    assert (await files.search("alpha", "deep/two.txt")).hits[0].line == 1
    assert (await files.search(".", "deep")).hits == []


async def test_a_slow_search_pattern_blocks_nothing_else(computer: Computer) -> None:
    await computer.files.write("trap", b"a" * 40 + b"!")
    task = asyncio.ensure_future(computer.files.search("(a+)+$", regex=True))
    assert (await computer.run("echo quick")).stdout == b"quick\n"
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await computer.run("echo quick")).stdout == b"quick\n"


async def test_batches_reply_in_order_and_a_failure_does_not_stop_the_rest(computer: Computer) -> None:
    files = computer.files
    assert await files.write_many({"a": b"1", "b/c": b"22", "d": b""}) == [None, None, None]
    errors = await files.write_many({"a/below": b"no", "e": b"yes"})
    assert errors[0] is not None
    assert errors[1] is None
    read = await files.read_many(["a", "missing", "b/c", "e"])
    assert [item if isinstance(item, bytes) else item.code for item in read] == [b"1", "files.not-found", b"22", b"yes"]
    stats = await files.stat_many(["a", "nope"])
    assert [item.code if isinstance(item, FreeholdError) else item.size for item in stats] == [1, "files.not-found"]
    assert await files.append_many({"a": b"2", "new": b"3"}) == [None, None]
    assert await files.mkdir_many(["m/n", "o"]) == [None, None]
    assert await files.copy_many({"a": "a2", "b": "b2"}) == [None, None]
    assert await files.move_many({"a2": "a3"}) == [None]
    listings = await files.list_many([".", "b2"])
    assert [len(listing) for listing in listings if isinstance(listing, list)] == [9, 1]
    assert await files.remove_many(["a3", "b2"], recursive=True) == [None, None]
    assert await files.read("a") == b"12"


async def test_a_batch_larger_than_a_message_is_sent_in_several(computer: Computer) -> None:
    names = {f"many/{'n' * 200}-{number}": str(number).encode() for number in range(3000)}
    assert set(await computer.files.write_many(names)) == {None}
    assert await computer.files.read_many(list(names)) == list(names.values())
    assert len(await computer.files.list("many")) == 3000
    await computer.files.remove("many", recursive=True)
    assert await computer.files.list() == []


async def test_folders_are_copied_and_moved_across_mounts(computer: Computer) -> None:
    await computer.run("mkdir -p t/s; echo x > t/s/f; chmod 750 t/s; ln -s f t/s/l; touch -d 2001-02-03 t/s/f")
    await computer.files.copy("t", "/home/agent/t")
    await computer.files.move("t", "/tmp/t")
    for place in ("/home/agent/t", "/tmp/t"):
        shown = await computer.run(f"cd {place}; stat -c '%a %Y %N' s/f s s/l | sed 's/ [0-9]* / /'; stat -c %Y s/f")
        assert shown.text == "644 's/f'\n750 's'\n777 's/l' -> 'f'\n981158400\n", place
    assert await computer.files.list() == []


async def test_a_full_disk_is_an_error_and_the_computer_goes_on(tmp_path: Path) -> None:
    async with Computer.start(limits=Limits(tmp=1024 * 1024, memory=256 * 1024 * 1024)) as computer:
        assert await refusal(computer.files.write("/tmp/big", b"x" * 3_000_000)) == "files.no-space"
        assert await computer.files.list("/tmp") == []
        assert await refusal(computer.files.append("/tmp/big", b"x" * 3_000_000)) == "files.no-space"
        assert (await computer.run("echo fine")).stdout == b"fine\n"
        answers = await computer.files.write_many({"/tmp/again": b"y" * 3_000_000, "ok": b"z"})
        assert answers[1] is None


async def test_a_file_beyond_the_size_limit_is_an_error(tmp_path: Path) -> None:
    async with Computer.start(limits=Limits(file_size=100_000)) as computer:
        assert await refusal(computer.files.write("big", b"x" * 300_000)) == "files.too-large"
        assert await computer.files.list() == []
        result = await computer.run("head -c 300000 /dev/zero > big")
        assert result.limit == "file_size"


async def test_a_very_deep_tree_is_walked_and_removed(computer: Computer) -> None:
    deep = "import os\nfor _ in range(1200):\n os.mkdir('d'); os.chdir('d')\n"
    (await computer.run(["python3", "-c", deep])).check()
    assert len(await computer.files.walk()) > 1000
    assert await refusal(computer.files.copy("d", "copy")) in ("files.too-deep", "files.name-too-long")
    await computer.files.remove("d", recursive=True)
    await computer.files.remove("copy", recursive=True)
    assert await computer.files.list() == []
    await computer.run("mkdir -p shut/in; touch shut/in/x; chmod 0 shut/in; chmod 0 shut")
    await computer.files.remove("shut", recursive=True)
    assert await computer.files.list() == []
