"""Folders for a computer that are made from something else: an archive, or a commit of a git repository."""
