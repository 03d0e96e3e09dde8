"""The guest packed into one file. The build is reproducible: the same sources and Python give the same bytes.

All modules are bundled into one, because searching an archive for many modules takes longer than running them. The
bundle is there twice: compiled for the Python of this machine, which starts three times as fast, and as source code for
any other Python. The compiled modules that a guest does not need at its start are in a second bundle, `later`, which is
read at the first use of one of them. So is what isolates need besides.
"""

import hashlib
import io
import json
import marshal
import os
import subprocess
import threading
import zipfile
from functools import cache
from pathlib import Path

from freehold.computer.contract import isolate_filter
from freehold.computer.contract.conventions import GUEST_PATH, GUEST_PYTHON
from freehold.computer.contract.isolate_filter import compile_isolate_filters
from freehold.errors import FreeholdError

_SOURCES = Path(__file__).resolve().parents[2] / "guest"
_ISOLATE_FILES = ("es_modules.js", "packages.js", "zygote.js", "fork.node")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_AT_START = """
freehold freehold.guest freehold.guest.codec freehold.guest.guest freehold.guest.kernel freehold.guest.landlock
freehold.guest.leftovers freehold.guest.link freehold.guest.loop freehold.guest.process freehold.guest.process_table
freehold.guest.relay freehold.guest.session_end freehold.guest.spawn freehold.guest.streams freehold.guest.wire
"""
AT_START = tuple(_AT_START.split())
"""The modules that every guest loads, and the one that must be there when nothing else works: the kill switch."""
_BUNDLE = """
import sys
from _frozen_importlib import ModuleSpec


class Bundle:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in MODULES or name in LATER:
            return ModuleSpec(name, Bundle, is_package=name in PACKAGES)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        if module.__name__ not in MODULES:
            from zipimport import zipimporter
            place = next((word for word in sys.argv[:2] if word.endswith(".pyz")), ARCHIVE)
            MODULES.update(UNPACK(zipimporter(place).get_data("later")))
        exec(UNPACK(MODULES[module.__name__]), module.__dict__)


PACKAGES = ("freehold", "freehold.guest", "freehold.guest.isolates")
sys.meta_path.insert(0, Bundle)
if "--zygote" in sys.argv:
    from freehold.guest.isolates.start import main
else:
    from freehold.guest.guest import main

main()
"""
_COMPILE = """
import __future__, ast, importlib.util, marshal, sys
bundle, modules, at_start = marshal.loads(sys.stdin.buffer.read())
flags = __future__.annotations.compiler_flag

def translate(name, text):
    # As a flag of the compiler, the annotations of the future need no module at run time.
    tree = ast.parse(text)
    tree.body = [one for one in tree.body if getattr(one, "module", "") != "__future__"]
    return marshal.dumps(compile(tree, name, "exec", flags, dont_inherit=True, optimize=2))

codes = {name: translate(name, text) for name, text in modules.items()}
first = {name: codes.pop(name) for name in at_start}
whole = f"from marshal import loads as UNPACK\\nMODULES = {first!r}\\nLATER = {sorted(codes)!r}" + bundle
code = marshal.dumps(compile(whole, "guest", "exec", dont_inherit=True, optimize=2))
main = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code
sys.stdout.buffer.write(marshal.dumps((main, marshal.dumps(codes)), 2))
"""


def read_sources() -> dict[str, str]:
    """The source of every guest module, by its dotted name."""
    sources = {"freehold": ""}
    for source in sorted(_SOURCES.rglob("*.py")):
        parts = [*source.relative_to(_SOURCES).parent.parts, source.stem]
        name = ".".join(["freehold.guest", *(part for part in parts if part != "__init__")])
        if source.stem != "__main__":
            sources[name] = source.read_text()
    return sources


def read_isolate_files() -> dict[str, bytes]:
    """What isolates need besides Python modules, by its name in the archive. The addon is missing if it was not built."""
    folder = _SOURCES / "isolates"
    return {f"isolates/{name}": (folder / name).read_bytes() for name in _ISOLATE_FILES if (folder / name).exists()}


def pack_guest(sources: dict[str, str], python: str = GUEST_PYTHON, files: dict[str, bytes] | None = None) -> bytes:
    """The archive. Not compressed, because unpacking would cost more time than it saves."""
    entries = {
        "__main__.py": (
            f"UNPACK = lambda text: compile(text, 'guest', 'exec')\nMODULES = {sources!r}\nLATER = (){_BUNDLE}".encode()
        )
    }
    entries.update(read_isolate_files() if files is None else files)
    entries["isolates/closed.bpf"], entries["isolates/networked.bpf"] = compile_isolate_filters()
    compiled = _compile(sources, python)
    if compiled is not None:
        entries["__main__.pyc"], entries["later"] = compiled
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return packed.getvalue()


def _compile(sources: dict[str, str], python: str) -> tuple[bytes, bytes] | None:
    """The compiled bundles; None if the host does not have that Python. The guest then starts from source code."""
    order = marshal.dumps((f"\nARCHIVE = {GUEST_PATH!r}{_BUNDLE}", sources, AT_START), 2)
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-X", "no_debug_ranges", "-c", _COMPILE],
            input=order,
            capture_output=True,
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    main, later = marshal.loads(done.stdout)  # noqa: S302 - written by the program above
    return main, later


def guest_archive() -> Path:
    """The packed guest on disk, readable by all users; written once for each content and Python, and again if it is gone."""
    path = _place()
    try:
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        draft = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        draft.write_bytes(pack_guest(read_sources(), files=read_isolate_files()))
        draft.chmod(0o644)
        draft.replace(path)
    except OSError as error:
        raise FreeholdError(
            "computer.no-guest",
            f"The guest archive cannot be written to {path.parent}: {error.strerror}",
            hint="Make that folder writable",
        ) from error
    return path


@cache
def _place() -> Path:
    """Shared by all Freeholds of this machine, or of this user."""
    if os.geteuid() == 0:
        folder = Path("/run/freehold-guest")  # not in a private folder: the uid of the computer must read it
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "freehold"
    return folder / f"guest-{_fingerprint(read_sources(), read_isolate_files())}.pyz"


def _fingerprint(sources: dict[str, str], files: dict[str, bytes]) -> str:
    digest = hashlib.sha256(json.dumps(sources).encode())
    builders = {"filter": Path(isolate_filter.__file__).read_bytes(), "archive": Path(__file__).read_bytes()}
    for name, content in sorted({**files, **builders}.items()):
        digest.update(f"{name}:{len(content)}:".encode() + content)
    try:
        python = Path(GUEST_PYTHON).resolve()
        found = python.stat()
        digest.update(f"{python}:{found.st_size}:{found.st_mtime_ns}".encode())
    except OSError:
        digest.update(b"no python")
    return digest.hexdigest()[:20]
