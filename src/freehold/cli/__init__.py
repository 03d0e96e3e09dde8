"""The owner's words: one module a verb, found by its file name."""
