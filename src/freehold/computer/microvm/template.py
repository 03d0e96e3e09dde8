"""A machine that was booted once and saved. Computers start as copies of it.

A template is named after all that it was made from. It holds no file of an owner, because it is booted with empty
folders, and no variable: a computer with an environment of its own boots without one. It is used only if its bytes are
those that were written, and if each file of the system that it remembers is as it was: its device, inode, mode, size and
the times of its last change. The bytes are read again after each boot of this machine, and whenever one of these differs.

A change that leaves them as they were is not noticed before the next boot: through a mapping that was writable already,
or below the file system. Only root can make one, since the folder is root's alone.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from freehold.computer.contract.spec import ComputerSpec, Mount
from freehold.computer.microvm.initramfs import cache_folder, fingerprint_files
from freehold.computer.microvm.layout import SYSTEM
from freehold.computer.microvm.saved_state import SavedState
from freehold.computer.microvm.vm import Blueprint, Vm
from freehold.computer.walls.ownership import chown_tree
from freehold.errors import FreeholdError

FORMAT = 3
MAX_TEMPLATES = 4
ATTRIBUTES_LIVE = 1.1
"""Seconds after which the machine forgets what it knows about the empty folders: virtiofsd says 1."""
STALE_DRAFT = 3600.0
SETTLED_AFTER = 1.0
"""Seconds: two changes that follow each other faster can carry the same time."""
LOCK = "lock"
LOCK_PAUSE = 0.05


def template_key(blueprint: Blueprint) -> str:
    """Names everything that a running machine depends on: programs, kernel, system, limits, and the plan of its inside."""
    order, hardware = blueprint.order, blueprint.hardware
    opened = [Path(f"/proc/self/fd/{one}").readlink() for one in (hardware.kernel, hardware.initramfs)]
    programs = [Path(hardware.tools.qemu), Path(hardware.tools.virtiofsd)]
    image = [] if order.spec.image is None else [Path(order.spec.image).expanduser()]
    words = {
        "format": FORMAT,
        "qemu": hardware.tools.version,
        "processor": hardware.accelerator if hardware.is_emulated else _describe_processor(),
        "size": [hardware.memory, hardware.cpus],
        "files": fingerprint_files([*opened, *programs, *image], ""),
        "mounts": [[mount.target, mount.writable, mount.source.is_dir()] for mount in order.spec.mounts],
        "guest": order.guest.name,  # it names its content
        "plan": blueprint.plan(0),
    }
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:32]


def _describe_processor() -> str:
    """A machine that was saved with KVM continues only on the same processor and kernel."""
    kept = ("model name", "flags", "microcode")
    lines = {line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(kept)}
    return "\n".join([os.uname().release, *sorted(lines)])


class Template:
    """A place in the cache, which may be empty."""

    def __init__(self, key: str) -> None:
        self.folder = cache_folder() / "templates" / key
        self.folder.parent.mkdir(mode=0o700, exist_ok=True)

    def is_usable(self) -> bool:
        """Whether there is one, and the system has not changed since."""
        try:
            known = json.loads((self.folder / "system").read_text())
            return all(_describe_file(Path("/", path).lstat()) == found for path, found in known.items())
        except (OSError, ValueError):
            return False

    def read_walls(self) -> tuple[str, ...]:
        """The walls that the machine's kernel has confirmed before it was saved. Raises OSError."""
        return tuple(json.loads((self.folder / "walls").read_text()))

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[SavedState, "Future[bool]"] | None]:
        """What was saved, and whether its bytes are the right ones, which is being found out. None if there is nothing."""
        try:
            expected = (self.folder / "digest").read_text()
            saved = SavedState.open_folder(self.folder)
        except OSError:
            yield None
            return
        with contextlib.suppress(OSError):
            os.utime(self.folder)  # the oldest are removed first
        with contextlib.closing(saved), ThreadPoolExecutor(1, "template") as pool:
            yield saved, pool.submit(lambda: self._is_as_written(saved, expected))

    def _is_as_written(self, saved: SavedState, expected: str) -> bool:
        """Reading all of it takes as long as starting the machine: what this kernel has not seen change is not read again."""
        note, now = self.folder / "checked", _describe_state(saved)
        with contextlib.suppress(OSError):
            if note.read_text() == now:
                return True
        if saved.digest() != expected:
            return False
        changed = max(os.fstat(file.fileno()).st_ctime for file in (saved.memory, saved.devices))
        if time.time() - changed > SETTLED_AFTER:
            with contextlib.suppress(OSError):
                note.write_text(now)
        return True

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, vm: Vm) -> None:
        """Save a machine here. If another process was faster, its template stays."""
        self.remove()
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=self.folder.parent))
        try:
            with contextlib.closing(SavedState.create_folder(draft)) as saved:
                vm.save(saved)
                (draft / "digest").write_text(saved.digest())
                (draft / "system").write_text(json.dumps(_find_known_files(vm)))
                (draft / "walls").write_text(json.dumps(vm.walls))
            with contextlib.suppress(OSError):
                draft.rename(self.folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        found: list[tuple[float, Path]] = []
        for folder in self.folder.parent.iterdir():
            with contextlib.suppress(OSError):
                changed = folder.stat().st_mtime
                if folder.name == LOCK:
                    continue
                if not folder.name.startswith("draft-"):
                    found.append((changed, folder))
                elif changed < time.time() - STALE_DRAFT:  # whoever wrote it was killed
                    shutil.rmtree(folder, ignore_errors=True)
        for _, folder in sorted(found, reverse=True)[MAX_TEMPLATES:]:
            shutil.rmtree(folder, ignore_errors=True)


def _find_known_files(vm: Vm) -> dict[str, list[int]]:
    """The files of this machine's system that the virtual one remembers: virtiofsd holds a descriptor for each."""
    found: dict[str, list[int]] = {}
    for share in vm.shares[1:]:
        for descriptor in Path(f"/proc/{share.process.pid}/fd").iterdir():
            place = descriptor.readlink()
            if place.is_relative_to(SYSTEM):
                name = str(place.relative_to(SYSTEM))
                held = descriptor.stat()
                # Below the stage there are folders of its own, which only hold the places of others.
                with contextlib.suppress(OSError):
                    if os.path.samestat(held, Path("/", name).lstat()):
                        found[name] = _describe_file(held)
    return found


def _describe_state(saved: SavedState) -> str:
    """Differs after each boot and after each change of the files: nobody can set the time of the last change."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    files = [_describe_file(os.fstat(file.fileno())) for file in (saved.memory, saved.devices)]
    return json.dumps([boot, *files])


def _describe_file(found: os.stat_result) -> list[int]:
    return [found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def find_template(blueprint: Blueprint, timeout: float) -> Template:
    """Make it if there is none that is usable. Raises what `Blueprint.boot` and `Vm.save` raise."""
    template = Template(template_key(blueprint))
    if not template.is_usable():
        with _locked(template, blueprint.order.cancelled):
            if not template.is_usable():  # another process may have made it meanwhile
                _make_template(blueprint, template, timeout)
    return template


@contextlib.contextmanager
def _locked(template: Template, cancelled: threading.Event) -> Iterator[None]:
    """One process makes templates at a time."""
    with (template.folder.parent / LOCK).open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if cancelled.wait(LOCK_PAUSE):
                    raise _given_up() from None
        yield


def _make_template(blueprint: Blueprint, template: Template, timeout: float) -> None:
    """Boot a machine with empty folders, and save it.

    In a thread of its own: the folders of the computer are not those of the template.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="freehold-template-") as place:
                order = replace(blueprint.order, spec=_empty_spec(blueprint.order.spec, Path(place)))
                for folder in (order.spec.workspace, order.spec.home):
                    chown_tree(folder, order.uid)
                _boot_and_save(Blueprint(order, blueprint.hardware, blueprint.release), template, timeout)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="template", daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _empty_spec(spec: ComputerSpec, place: Path) -> ComputerSpec:
    """The same computer with folders of the same kinds, in which there is nothing."""
    mounts: list[Mount] = []
    for name in ("workspace", "home"):
        (place / name).mkdir()
    for number, mount in enumerate(spec.mounts):
        source = place / f"mount-{number}"
        if mount.source.is_dir():
            source.mkdir()
        else:
            source.touch()
        mounts.append(replace(mount, source=source))
    return replace(spec, workspace=place / "workspace", home=place / "home", mounts=tuple(mounts))


def _boot_and_save(blueprint: Blueprint, template: Template, timeout: float) -> None:
    blueprint.stage()
    vm = blueprint.boot(timeout, is_template=True)
    try:
        vm.control.ask("warm", timeout)
        if blueprint.order.cancelled.wait(ATTRIBUTES_LIVE):
            raise _given_up()
        template.write(vm)
    finally:
        vm.remove()
        vm.streams.close()


def _given_up() -> FreeholdError:
    return FreeholdError("computer.ended", "The start was given up")
