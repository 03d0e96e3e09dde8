"""A desktop in the computer, as a feature: an X display with a window manager, shown to the owner and usable by agents."""
