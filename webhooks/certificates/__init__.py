"""The certificates of the webhook server, for clusters without cert-manager.

Two Secrets: one with the CA, its key, and the bundle of all CAs that are trusted; one with what the server needs.
`rules` decide from what there is which step comes next, `keeper` takes it, and does so whenever something changes or
becomes due, `command` is `python -m webhooks certificates`.

There is no leader. Each replica looks at what is there, takes one step, with a resourceVersion as precondition, and
looks again; who loses a race finds the step done.
"""
