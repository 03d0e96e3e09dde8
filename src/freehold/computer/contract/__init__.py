"""The contract between the library and the backends: the spec, the protocols, and what is the same inside every computer."""
