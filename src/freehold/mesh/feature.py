"""Neighbours as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature

FEATURE = Feature(
    name="mesh",
    title="Neighbours",
    section="freehold.mesh.section:MeshSection",
    checks="freehold.mesh.checks",
    health="freehold.mesh.health:make_probe",
    routes=(
        "freehold.mesh.routes:MeshRoutes",
        "freehold.mesh.neighbour_routes:NeighbourRoutes",
        "freehold.mesh.work_routes:WorkRoutes",
        "freehold.mesh.relay_routes:RelayRoutes",
        "freehold.mesh.record_routes:RecordRoutes",
    ),
    service="freehold.mesh.service:MeshService",
    paired="freehold.mesh.paired_freeholds:read_paired",
    commands={"mesh": "freehold.mesh.cli:command"},
    topic=CommandTopic.NETWORK,
    pages=(ControlCenterPage("/neighbours", "Neighbours"),),
)
