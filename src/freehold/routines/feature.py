"""Routines as a feature."""

from freehold.features import Feature

FEATURE = Feature(
    name="routines",
    title="Routines",
    section="freehold.routines.section:RoutinesSection",
    checks="freehold.routines.checks",
    service="freehold.routines.service:make_service",
    routes="freehold.routines.routes:RoutineRoutes",
)
