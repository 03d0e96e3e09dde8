"""What this kernel offers to every backend that shares it: filters, control groups, the watch over the limits, ownership."""
