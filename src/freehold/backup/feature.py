"""Backups as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature

FEATURE = Feature(
    name="backup",
    title="Backups",
    section="freehold.backup.section:BackupSection",
    checks="freehold.backup.checks",
    program="freehold.backup.program:plan_program",
    health="freehold.backup.health:make_probe",
    routes="freehold.backup.routes:BackupRoutes",
    metrics="freehold.backup.metrics:add_backup_metrics",
    commands={
        "backup": "freehold.backup.cli:command",
        "restore-from": "freehold.backup.restore_cli:restore_from",
        "export": "freehold.backup.restore_cli:export",
        "import": "freehold.backup.restore_cli:import_archive",
    },
    topic=CommandTopic.HOUSE,
    pages=(ControlCenterPage("/backup", "Backups"),),
)
