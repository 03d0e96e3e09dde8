"""The table of mounts, with names that were chosen to make it lie."""

import os
import subprocess
from pathlib import Path

import pytest

from freehold.computer.walls.mount_table import MountEntry, parse_mounts, read_mounts

ODD = "a\nb c\td\\e\r\x0b\x1c\x85\u2028 - f\udcff"
"""Every character that ends a line or a word for somebody, and a byte that is no text."""


def test_a_name_ends_neither_its_line_nor_its_word() -> None:
    table = (
        b"22 1 0:20 / / ro,nosuid shared:1 master:2 - overlay over rw\n"
        b"23 22 0:21 / /x\r\x0b\x1c\xc2\x85/\\0111\\0402\\0123\\1344\xff rw - tmpfs none\\040none rw\n"
    )
    assert parse_mounts(table) == [
        MountEntry("/", "overlay", ("ro", "nosuid"), is_shared=True, root="/", device="0:20"),
        MountEntry("/x\r\x0b\x1c\x85/\t1 2\n3\\4\udcff", "tmpfs", ("rw",), is_shared=False, root="/", device="0:21"),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount here")
def test_a_mount_with_an_odd_name_is_found_where_it_is(tmp_path: Path) -> None:
    """The kernel writes the table: a folder whose name looks like the line of a read-only root."""
    folder = tmp_path / ODD / "x\n22 1 0:20 " / " " / "ro - tmpfs none rw"
    folder.mkdir(parents=True)
    mount = 'mount -t tmpfs -o rw,nosuid none "$1" && echo mounted && exec cat'
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", mount, "sh", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"mounted\n"
        (found,) = (entry for entry in read_mounts(process.pid) if entry.place == str(folder))
        assert found.kind == "tmpfs"
        assert {"rw", "nosuid"} <= set(found.options)
        assert process.stdin is not None
        process.stdin.close()
