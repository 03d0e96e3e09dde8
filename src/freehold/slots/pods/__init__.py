"""Pods: personal data, as documents in folders, which an agent reaches only as the owner has granted."""
