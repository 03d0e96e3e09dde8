"""`freehold upgrade`: another version beside this one, tried with the real home, and taken back if it does not get ready."""
