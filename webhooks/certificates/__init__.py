"""Certificates of the webhook server, for clusters without cert-manager.

There are two Secrets: one with the CA, its key, and the bundle of all trusted CAs; one for the server. `rules` decide
the next step from the current state, `keeper` takes it whenever something changes or becomes due, `command` is `python
-m webhooks certificates`.

There is no leader. Each replica reads the state, takes one step with a resourceVersion as precondition, and reads
again; a replica that loses a race finds the step done.
"""
