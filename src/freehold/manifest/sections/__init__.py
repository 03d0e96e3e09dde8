"""The sections of `freehold.toml`, one model each. Every key has a type, a default and a sentence."""
