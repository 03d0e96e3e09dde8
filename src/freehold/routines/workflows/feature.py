"""Workflows as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature, WorkSigns

FEATURE = Feature(
    name="workflows",
    title="Workflows",
    section="freehold.routines.workflows.section:WorkflowsSection",
    health="freehold.routines.workflows.health:make_probe",
    service="freehold.routines.workflows.service:make_service",
    work=WorkSigns(("workflows_workflow",), ("workflow.*",)),
    tools="freehold.routines.workflows.tools:make_workflow_tools",
    routes="freehold.routines.workflows.routes:WorkflowRoutes",
    metrics="freehold.routines.workflows.metrics:add_workflow_metrics",
    commands={"workflow": "freehold.routines.workflows.cli:command"},
    topic=CommandTopic.AGENTS,
    pages=(ControlCenterPage("/workflows", "Workflows"),),
)
