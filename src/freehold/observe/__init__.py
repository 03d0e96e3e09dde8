"""Logs, metrics, traces and health probes.

Import from the modules themselves: `logs`, `metrics`, `metrics_server`, `process`, `tracing`, `probes`, `secrets`.
"""
