"""The TLS admission server, one module a webhook."""
