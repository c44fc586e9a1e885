"""Tokens of ServiceAccounts, requested and renewed, and kept in Secrets for their users.

All state is in the Secret: what is wanted (annotations), what there is (data), and when it is to be renewed (an
annotation). Rules, functions of these and the time:

    watched.py      what is kept of a Secret, and which changes matter
    token_spec.py    what a Secret asks for, and what is wrong with that
    kubeconfig.py   reading, changing and writing kubeconfigs
    contents.py     where in the data of a Secret token and CA are
    rules.py        whether the present token is good enough, when to renew it, what the ServiceAccount looks like
    metrics.py      how many tokens are overdue
    memory.py       what is remembered of a Secret between passes: deadlines, and how often it may ask

Around them what talks to clusters:

    authority.py    the CA of the target cluster
    targets.py      watches of the target Secrets
    tokens.py       ServiceAccounts, TokenRequests and TokenReviews in the target cluster
    reconcile.py    one pass
    controller.py   which event concerns which Secret

Nothing here logs or formats a token or a kubeconfig; objects that hold one leave it out of their `repr`.
"""
