"""Where in the data of a Secret token and CA are: in a kubeconfig, if there is one, or under keys of their own."""

import base64

from agent.shared.token_requestor.rules import kubeconfig
from agent.shared.token_requestor.watched import CA_BUNDLE, DATA, KUBECONFIG, TOKEN, Data

Changes = dict[str, bytes | None]
"""New values of keys; None for a key that is to go."""


def token_in(data: Data) -> bytes:
    """The token, empty if there is none.

    Raises:
        KubeconfigError: there is a kubeconfig that can't hold one.
    """
    if KUBECONFIG in data:
        token: str = kubeconfig.current_user(kubeconfig.decode(data[KUBECONFIG])).get("token", "")
        return token.encode()
    return data.get(TOKEN, b"")


def authority_in(data: Data) -> bytes:
    """The CA bundle, empty if there is none.

    Raises:
        KubeconfigError: there is a kubeconfig that can't hold one.
    """
    if KUBECONFIG in data:
        cluster = kubeconfig.current_cluster(kubeconfig.decode(data[KUBECONFIG]))
        return base64.b64decode(cluster.get("certificate-authority-data", ""))
    return data.get(CA_BUNDLE, b"")


def placed(data: Data, *, token: str, authority: bytes | None) -> Changes:
    """What changes when token and CA are put into the data.

    Without a CA bundle (`authority` empty) one under a key of its own is removed; if it is not known (None), what is
    there stays.

    Raises:
        KubeconfigError: there is a kubeconfig that can't hold them.
    """
    if KUBECONFIG in data:
        config = kubeconfig.decode(data[KUBECONFIG])
        kubeconfig.current_user(config)["token"] = token
        if authority:
            encoded = base64.b64encode(authority).decode()
            kubeconfig.current_cluster(config)["certificate-authority-data"] = encoded
        return changes(data, {KUBECONFIG: kubeconfig.encode(config)})
    wanted: Changes = {TOKEN: token.encode()}
    if authority is not None:
        wanted[CA_BUNDLE] = authority or None
    return changes(data, wanted)


def removed(data: Data) -> Changes:
    """What changes when nothing of it is left, since another Secret holds it."""
    return changes(data, dict.fromkeys(DATA))


def changes(data: Data, wanted: Changes) -> Changes:
    """Those that make a difference."""
    return {name: value for name, value in wanted.items() if data.get(name) != value}
