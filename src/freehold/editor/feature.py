"""The editor as a feature."""

from freehold.features import ControlCenterPage, Feature

FEATURE = Feature(
    name="editor",
    title="Editor",
    section="freehold.editor.section:EditorSection",
    checks="freehold.editor.checks",
    exceptions=("freehold.editor.exception:EDITOR",),
    service="freehold.editor.service:make_editor_service",
    has_site=True,
    health="freehold.editor.service:make_probe",
    pages=(ControlCenterPage("/editor", "Editor"),),
)
