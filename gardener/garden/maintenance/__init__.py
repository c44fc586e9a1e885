"""Maintenance of a Shoot in its time window: times, and changes.

    schedule     times of maintenance
    plan         changes: versions and their consequences, operation and tasks
    report       the plan in words: status, Events
    choice       versions that fit together
    kubernetes   the versions of Kubernetes that may follow
    bindings     the CredentialsBinding that replaces a SecretBinding
    images       the next version of a machine image
    repairs      settings that versions of Kubernetes forbid; the feature gates and plugins that they know

All of it is pure: the next changes, and their reasons, can be shown without carrying them out.
"""
