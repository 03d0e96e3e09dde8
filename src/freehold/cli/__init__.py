"""The `freehold` command. Each module is one command and is found by its file name."""
