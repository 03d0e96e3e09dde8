"""Agents that speak ACP, started inside the computer, and the sessions with them.

Layers, each importing only those below it: `tools` (host tools), `sessions`, `catalogue`, `acp`.
"""
