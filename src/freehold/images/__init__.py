"""The manifest as an image: a lock of every package, and builds from it that are offline and the same each time."""
