"""all-MiniLM-L6-v2: sentences as vectors, without a network and without any library but numpy.

The weights are built by `python -m tools.minilm` into this folder, and are part of a released wheel.
"""
