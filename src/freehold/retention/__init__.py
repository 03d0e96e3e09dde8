"""What Freehold keeps, for how long and where: one report for the command line and for the settings page."""

from freehold.retention.report import RetentionReport, RetentionRule, read_retention

__all__ = ["RetentionReport", "RetentionRule", "read_retention"]
