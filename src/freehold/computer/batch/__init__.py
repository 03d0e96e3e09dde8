"""A batch: one piece of work over many inputs, each in a sealed computer of its own, with a journal to go on from."""
