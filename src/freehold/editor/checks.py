"""Checks of `[editor]`."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from freehold.editor.exception import EDITOR_PORT
from freehold.editor.section import EditorSection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value


@check("E926")
def unusable_editor(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The editor cannot be started: its program is no path, or a service has its port."""
    section = manifest.section(EditorSection)
    if not section.enabled:
        return
    path = PurePosixPath(section.program)
    if not path.is_absolute() or ".." in path.parts:
        yield CheckFinding(
            ("editor", "program"),
            f"editor.program is {show_value(section.program)}",
            "A full path in the computer, such as /usr/bin/code-server",
        )
    for name, service in manifest.computer.services.items():
        if service.port == EDITOR_PORT:
            yield CheckFinding(
                ("computer", "services", name, "port"),
                f"The service {name} has the port {EDITOR_PORT}, which the editor uses",
                "Another port, such as 8000",
            )
