"""A first project for an empty workspace: a small page with its dev server."""
