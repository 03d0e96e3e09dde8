"""Backends that a container engine runs: docker and podman, through the API that both have on a unix socket."""
