"""Isolates, seen from the host: snippets of code that run inside the computer, each in a sealed process of its own."""
