"""Credentials as a feature: secrets that agents use for named hosts without seeing them."""
