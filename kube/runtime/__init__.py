"""Access to an API server: connection, client, discovery, watch, cache, queue, controller, events, election."""
