"""Orchestrator: agents that work for another one, each in a computer and a copy of a folder of its own."""
