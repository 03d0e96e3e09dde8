"""Routines as a feature."""

from freehold.features import ControlCenterPage, Feature

FEATURE = Feature(
    name="routines",
    title="Routines",
    section="freehold.routines.section:RoutinesSection",
    checks="freehold.routines.checks",
    service="freehold.routines.service:make_service",
    tools="freehold.routines.tools:make_routine_tools",
    routes="freehold.routines.routes:RoutineRoutes",
    commands={"routines": "freehold.routines.cli:command"},
    pages=(ControlCenterPage("/routines", "Routines"),),
)
