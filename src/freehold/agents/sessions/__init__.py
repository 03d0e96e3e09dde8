"""Sessions with agents: what is stored, what runs, and what the owner is asked."""
