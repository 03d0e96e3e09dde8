"""Programs for those who build Freehold; not part of the package."""
