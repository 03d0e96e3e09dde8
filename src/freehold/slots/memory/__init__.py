"""Memory: what agents remember, found again by meaning and by exact words."""
