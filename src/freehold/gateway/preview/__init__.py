"""Previews: servers inside the computer, shown to the owner on origins of their own."""
