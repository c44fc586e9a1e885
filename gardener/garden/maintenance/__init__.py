"""What is done to a Shoot in its maintenance time window: when that is, and what changes.

    schedule     when a Shoot is maintained
    plan         what changes: versions, what goes along with them, operation and tasks
    report       the plan in words: status, Events
    choice       the versions that belong together
    kubernetes   the versions of Kubernetes that may follow
    bindings     the CredentialsBinding that takes the place of a SecretBinding
    images       the version of a machine image that follows
    repairs      what versions of Kubernetes forbid, from one of them on; the feature gates and plugins that they know

All of it is pure: what comes next, and why, can be shown without doing it.
"""
