"""Everything the manifest needs that is not Freehold itself. Looked for at boot, never fetched."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.isolation import find_tools
from freehold.computer.seccomp import compile_filters
from freehold.errors import FreeholdError
from freehold.keeper.plan import Plan


@dataclass(frozen=True)
class Missing:
    """What is not there, who needs it, and the command that gets it."""

    artifact: str
    needed_by: str
    command: str


def check_artifacts(plan: Plan) -> None:
    """Raise `keeper.missing-artifact` naming everything that is missing at once."""
    missing = list(find_missing(plan))
    if missing:
        raise FreeholdError(
            "keeper.missing-artifact",
            "; ".join(f"{one.artifact} (needed by {one.needed_by})" for one in missing),
            hint=" · ".join(dict.fromkeys(one.command for one in missing)),
        )


def find_missing(plan: Plan) -> Iterator[Missing]:
    if plan.backend == "bubblewrap":
        for look in (find_tools, compile_filters):
            try:
                look()
            except FreeholdError as error:
                yield Missing(error.message, 'computer.backend = "bubblewrap"', error.hint)
    root = Path("/") if plan.image is None else Path(plan.image).expanduser()
    if plan.image is not None and not root.is_dir():
        command = f"mmdebstrap --variant=minbase --include=python3 bookworm {root}"
        yield Missing(f"There is no folder {root}", "computer.image", command)
    elif not (root / "usr/bin/python3").exists():
        wanted = "apt install python3-minimal" if plan.image is None else f"chroot {root} apt install python3-minimal"
        yield Missing(f"There is no {root / 'usr/bin/python3'}", "the guest, which is pid 1 in the computer", wanted)
    for mount in plan.mounts:
        source = Path(mount.source).expanduser()
        if not source.exists():
            yield Missing(f"There is no {source}", f"the mount at {mount.target}", f"mkdir -p {source}")
