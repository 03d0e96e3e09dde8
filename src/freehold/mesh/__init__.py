"""Neighbours: an identity of its own, relays, and Freeholds that work for each other. Off by default."""
