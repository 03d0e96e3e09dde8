"""What can be seen of a Freehold: logs, metrics, traces and probes.

Import from the modules themselves: `logs`, `metrics`, `exposition`, `process`, `tracing`, `probes`, `secrets`.
"""
