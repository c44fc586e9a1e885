"""Invalidate static tokens of ServiceAccounts that should not have any.

If a ServiceAccount has `automountServiceAccountToken: false`, the token in a Secret that no Pod mounts helps only a
thief. The controller labels such Secrets; the webhook of the same name sees Secrets with these labels on their way
through the API server, and overwrites the token, or has a new one created.
"""
