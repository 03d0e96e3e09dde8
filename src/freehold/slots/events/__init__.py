"""Events: what others are told, as CloudEvents, in a log that is read by a cursor and sent to a sink."""
