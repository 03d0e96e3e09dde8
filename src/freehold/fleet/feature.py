"""The fleet as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature

FEATURE = Feature(
    name="fleet",
    title="Fleet",
    section="freehold.fleet.section:FleetSection",
    checks="freehold.fleet.checks",
    program="freehold.fleet.program:plan_program",
    health="freehold.fleet.health:make_probe",
    routes="freehold.fleet.routes:FleetRoutes",
    commands={"fleet": "freehold.fleet.cli:command"},
    topic=CommandTopic.HOUSE,
    pages=(ControlCenterPage("/fleet", "Fleet"),),
)
