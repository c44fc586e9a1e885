"""Makes static tokens useless whose ServiceAccounts are not meant to have any.

Where a ServiceAccount has `automountServiceAccountToken: false`, the token in a Secret that no Pod mounts is of use
only to a thief. The controller puts labels on such Secrets; the webhook of the same name sees Secrets with
these labels on their way through the API server, and overwrites the token, or lets a new one be made.
"""
