"""Beads: work items, with dependencies, claims and history."""
