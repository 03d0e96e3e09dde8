"""Builds a Debian package with Freehold, everything that it needs from PyPI, and its systemd unit.

python -m tools.deb dist/freehold-0.1.0-py3-none-manylinux_2_17_x86_64.whl -d dist
"""

import argparse
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

from freehold.cli.completion import make_script
from freehold.deploy.systemd import render_unit
from freehold.home import Home
from freehold.upgrade.wheel import read_wheel

ROOT = Path(__file__).resolve().parents[1]
EPOCH = 1_700_000_000
PYTHON = "/usr/bin/python3"
PLACE = "/usr/lib/freehold"
HOME = "/var/lib/freehold"
CONTROL = """\
Package: freehold
Version: {version}
Architecture: {architecture}
Maintainer: Freehold <freehold@localhost>
Installed-Size: {size}
Depends: python3 (>= {python}), python3 (<< {next_python}), python3-venv, bubblewrap, libseccomp2, adduser, util-linux
Recommends: git, ca-certificates
Section: admin
Priority: optional
Description: your own computer for AI agents
 A sealed computer in which agents work, a history of every change with undo,
 and a control center in the browser. One owner, on a machine of their own.
"""
COMMAND = """\
#!/bin/sh
# For root this is the Freehold of the service, as the user that it runs as. FREEHOLD_HOME or --home name another.
case " $* " in *" --home"*) named=1 ;; esac
if [ "$(id -u)" = 0 ] && [ -z "$FREEHOLD_HOME$named" ]; then
    export HOME={home} FREEHOLD_HOME={home}
    unset XDG_RUNTIME_DIR
    [ ! -d /run/freehold ] || export XDG_RUNTIME_DIR=/run/freehold
    cd /
    exec runuser -u freehold -- {place}/bin/freehold "$@"
fi
exec {place}/bin/freehold "$@"
"""
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/freehold",
    "zsh": "usr/share/zsh/vendor-completions/_freehold",
    "fish": "usr/share/fish/vendor_completions.d/freehold.fish",
}
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    adduser --quiet --system --group --home {home} --no-create-home --shell /usr/sbin/nologin freehold
    install -d -m 0700 -o freehold -g freehold {home}
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        systemctl try-restart freehold.service || true
    fi
    [ -n "$2" ] || echo "To start Freehold as a service: systemctl enable --now freehold && freehold open"
fi
"""
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now freehold.service || true
fi
"""
POSTRM = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "$1" = purge ] && [ -d {home} ]; then
    echo "Your data is kept in {home}. To remove it: rm -r {home}"
fi
"""


def build_deb(wheel: Path, folder: Path, *, requirements: Path | None, level: int = 6) -> Path:
    """The package. The same wheel and requirements give the same bytes. Without requirements it has Freehold alone."""
    release = read_wheel(wheel)
    with tempfile.TemporaryDirectory(prefix="freehold-deb-") as name:
        stage = Path(name) / "stage"
        place = stage / PLACE.lstrip("/")
        place.parent.mkdir(parents=True)
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(place)], check=True)
        _install(place, wheel, requirements)
        _make_movable(place)
        _add_files(stage, place)
        _add_control(stage, release.version)
        _fix_times(stage)
        target = folder / f"freehold_{release.version}_{_read_architecture()}.deb"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zgzip", f"-z{level}", "--build", str(stage), str(target)],
            check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)},
        )  # fmt: skip
    return target


def _install(place: Path, wheel: Path, requirements: Path | None) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin/python"), "install", "--quiet", "--no-compile"]
    pip += ["--disable-pip-version-check"]
    if requirements is not None:
        subprocess.run([*pip, "--require-hashes", "-r", str(requirements)], check=True)
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)


def _make_movable(place: Path) -> None:
    """Nothing in it names the folder in which it was made."""
    for script in (place / "bin").iterdir():
        if script.is_symlink() or not script.read_bytes().startswith(b"#!"):
            continue
        lines = script.read_text().splitlines(keepends=True)
        script.write_text(f"#!{PLACE}/bin/python\n" + "".join(lines[1:]))
    for name in ("activate", "activate.csh", "activate.fish", "Activate.ps1"):
        (place / "bin" / name).unlink(missing_ok=True)
    config = place / "pyvenv.cfg"
    kept = [line for line in config.read_text().splitlines() if not line.startswith("command")]
    config.write_text("\n".join(kept) + "\n")
    for left in [*place.rglob("direct_url.json"), *place.rglob("RECORD")]:
        left.unlink()
    for compiled in place.rglob("__pycache__"):
        shutil.rmtree(compiled)


def _add_files(stage: Path, place: Path) -> None:
    _write(stage / "usr/bin/freehold", COMMAND.format(home=HOME, place=PLACE), 0o755)
    for shell, path in COMPLETIONS.items():
        _write(stage / path, make_script(shell) + "\n")
    home = Home(Path(HOME), Path("/run/freehold"))
    with mock.patch.object(sys, "executable", f"{PLACE}/bin/python"):
        unit = render_unit("freehold", home)
    head, _, body = unit.partition("[Unit]\n")
    assert head.startswith("#"), "the words on how to install it by hand"
    _write(stage / "lib/systemd/system/freehold.service", f"[Unit]\n{body}")
    _write(stage / "usr/share/man/man1/freehold.1", (ROOT / "docs/freehold.1").read_text())
    _write(stage / "usr/share/doc/freehold/copyright", (ROOT / "LICENSE").read_text())
    shutil.rmtree(place / "share", ignore_errors=True)


def _add_control(stage: Path, version: str) -> None:
    size = sum(path.lstat().st_size for path in stage.rglob("*") if path.is_file()) // 1024
    found = subprocess.run(
        [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"], check=True, capture_output=True, text=True
    )
    major, minor = map(int, found.stdout.split())
    text = CONTROL.format(
        version=version,
        architecture=_read_architecture(),
        size=size,
        python=f"{major}.{minor}",
        next_python=f"{major}.{minor + 1}",
    )
    _write(stage / "DEBIAN/control", text)
    for name, script in (("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)):
        _write(stage / "DEBIAN" / name, script.format(home=HOME), 0o755)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _fix_times(stage: Path) -> None:
    for path in [stage, *stage.rglob("*")]:
        if not path.is_symlink():
            is_program = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if is_program else 0o644)
        os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def _read_architecture() -> str:
    return subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("-d", "--folder", type=Path, default=Path("dist"))
    options = parser.parse_args()
    print(build_deb(options.wheel.absolute(), options.folder, requirements=ROOT / "requirements/runtime.lock"))


if __name__ == "__main__":
    main()
