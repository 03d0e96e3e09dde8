"""A browser for agents, as a feature: Chromium in a computer of its own for each session."""
