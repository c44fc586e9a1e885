"""Tokens of ServiceAccounts, requested and renewed, and kept in Secrets for their users.

All state is in the Secret: what is wanted (annotations), what there is (data), and when it is to be renewed (an
annotation). Nothing here logs or formats a token or a kubeconfig; objects that hold one leave it out of their `repr`.
"""
