"""Channels as a feature: how the owner is reached, and what the owner may send, away from the control center."""
