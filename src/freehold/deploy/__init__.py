"""Where Freehold runs: files for docker compose, podman, Kubernetes, systemd and Caddy, written from the manifest."""
