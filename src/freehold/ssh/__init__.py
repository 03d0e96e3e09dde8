"""The side door: an authority whose certificates live a day at most, and a server whose channels are guest processes."""
