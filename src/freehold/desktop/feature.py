"""The desktop as a feature."""

from freehold.features import ControlCenterPage, Feature

FEATURE = Feature(
    name="desktop",
    title="Desktop",
    section="freehold.desktop.section:DesktopSection",
    checks="freehold.desktop.checks",
    exceptions=("freehold.desktop.exception:DESKTOP",),
    service="freehold.desktop.service:make_desktop_service",
    has_site=True,
    health="freehold.desktop.service:make_probe",
    tools="freehold.desktop.tools:make_desktop_tools",
    pages=(ControlCenterPage("/desktop", "Desktop"),),
)
