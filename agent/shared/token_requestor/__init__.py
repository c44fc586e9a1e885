"""Tokens of ServiceAccounts, requested and renewed, and kept in Secrets for their users.

All state is in the Secret: the request (annotations), the token (data), and the time of the renewal (an annotation).
Nothing here logs or formats a token or a kubeconfig; objects that hold one leave it out of their `repr`.
"""
