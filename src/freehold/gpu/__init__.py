"""A GPU for the computer, as a feature: exactly the devices that the manifest names."""
