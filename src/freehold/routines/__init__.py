"""Routines: work that begins without the owner, on a schedule or because something happened, within bounds."""
