"""The exception that an editor needs: what it opens, and nothing else."""

from freehold.editor.section import EditorSection
from freehold.manifest.exceptions import NeededFile, SecurityRelevantUse, Uses
from freehold.manifest.model import Manifest

EDITOR_PORT = 8440


def _uses(manifest: Manifest) -> Uses:
    if manifest.section(EditorSection).enabled:
        yield ("editor", "enabled"), "true"


def _adds(manifest: Manifest) -> tuple[str, ...]:
    gallery = manifest.section(EditorSection).gallery
    return (
        f"Ports: 127.0.0.1:{EDITOR_PORT} in the computer. It answers only with a password that the gateway makes at each start",
        "Folders: .local/share/code-server in the home of the computer, for settings and extensions",
        f"Network: {'your browser may ask open-vsx.org for extensions' if gallery else 'none. Programs inside use egress'}",
        "Memory: its programs count for the limit of the computer",
        "Devices: none",
    )


def _needs(manifest: Manifest) -> tuple[NeededFile, ...]:
    return (
        NeededFile(
            manifest.section(EditorSection).program,
            "install the Debian package of code-server (github.com/coder/code-server), or npm install -g code-server",
            in_main=True,
        ),
    )


EDITOR = SecurityRelevantUse(
    "editor",
    "extensions that agents put into its folder run in the editor, and show what they like in its page",
    _uses,
    adds=_adds,
    needs=_needs,
    trial="freehold.editor.trial:try_editor",
)
