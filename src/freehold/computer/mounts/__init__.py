"""Folders for a computer that are made from something else: an archive, a commit of a git repository, or a folder on a server."""
