"""Durable workflows: Python files that run inside the computer, each step journaled on the host."""
