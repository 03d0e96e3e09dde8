"""The keeper's own page: status, restarts and undo for the owner, with no script and with everything else down."""
