"""Routines as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature, WorkSigns

FEATURE = Feature(
    name="routines",
    title="Routines",
    section="freehold.routines.section:RoutinesSection",
    checks="freehold.routines.checks",
    health="freehold.routines.health:make_probe",
    service="freehold.routines.service:make_service",
    work=WorkSigns(("routines_routine", "routines_run"), ("routine.*",)),
    tools="freehold.routines.tools:make_routine_tools",
    routes="freehold.routines.routes:RoutineRoutes",
    metrics="freehold.routines.metrics:add_routine_metrics",
    commands={"routines": "freehold.routines.cli:command"},
    topic=CommandTopic.AGENTS,
    pages=(ControlCenterPage("/routines", "Routines"),),
)
