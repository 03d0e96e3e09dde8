"""Code in isolates as a feature: `/v1/code`, its settings, and the page with notebooks."""
