"""Rules for the present token, the time of its renewal, its place, and the ServiceAccount."""

import base64
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.shared.token_requestor.rules import kubeconfig
from agent.shared.token_requestor.rules.kubeconfig import KubeconfigError
from agent.shared.token_requestor.rules.token_spec import InvalidSecretError, TokenSpec
from agent.shared.token_requestor.token_secret import CA_BUNDLE, DATA, KUBECONFIG, TOKEN, Data
from kube.clock import format_time, parse_time
from kube.objects import Object, labels, metadata

# --- place of token and CA in the data of a Secret


Changes = dict[str, bytes | None]
"""New values of keys; None removes a key."""


def token_in(data: Data) -> bytes:
    """Return the token, empty if there is none.

    Raises:
        KubeconfigError: there is a kubeconfig that can't hold one.
    """
    if KUBECONFIG in data:
        token: str = kubeconfig.current_user(kubeconfig.decode(data[KUBECONFIG])).get("token", "")
        return token.encode()
    return data.get(TOKEN, b"")


def authority_in(data: Data) -> bytes:
    """Return the CA bundle, empty if there is none.

    Raises:
        KubeconfigError: there is a kubeconfig that can't hold one.
    """
    if KUBECONFIG in data:
        cluster = kubeconfig.current_cluster(kubeconfig.decode(data[KUBECONFIG]))
        return base64.b64decode(cluster.get("certificate-authority-data", ""))
    return data.get(CA_BUNDLE, b"")


def placed(data: Data, *, token: str, authority: bytes | None) -> Changes:
    """Changes that put token and CA into the data.

    Without a CA bundle (`authority` empty) one under a key of its own is removed; if it is unknown (None), the present
    one stays.

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
    """Changes that remove all keys, since another Secret holds the token."""
    return changes(data, dict.fromkeys(DATA))


def changes(data: Data, wanted: Changes) -> Changes:
    """Wanted changes that differ from the data."""
    return {name: value for name, value in wanted.items() if data.get(name) != value}


_LONGEST_LIFETIME = 24 * 3600 * 10**9
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


# --- the present token


@dataclass(frozen=True, slots=True)
class Due:
    """A new token is needed; the reason is for the log."""

    reason: str
    rejected: bool = False
    """Whether the API server rejects the present token."""


def usable_token(data: Data | None, spec: TokenSpec, *, renew_timestamp: str, authority: bytes) -> bytes | Due:
    """Return the present token, or the reason for a new one.

    `data` is None if the Secret does not exist. `authority` is the CA of the target cluster; if it is empty, it is
    unknown and not compared.

    Raises:
        InvalidSecretError: the data can't hold a token, or no CA.
    """
    if data is None:
        return Due("the target Secret does not exist")
    try:
        token = token_in(data)
    except KubeconfigError as error:
        raise InvalidSecretError(f"could not check whether token exists in secret data: {error}") from error
    try:
        outdated = spec.wants_authority and bool(authority) and authority_in(data) != authority
    except KubeconfigError as error:
        raise InvalidSecretError(f"could not check whether the caBundle is up to date: {error}") from error
    if not renew_timestamp:
        return Due("the renewal time of the token is unknown")
    if not token:
        return Due("there is no token")
    return Due("the CA of the target cluster has changed") if outdated else token


def renew_time(text: str) -> datetime | None:
    """Time in the annotation; None if it can't be read."""
    if not _RFC_3339.fullmatch(text):
        return None
    try:
        return parse_time(text.upper())
    except ValueError:
        return None


# --- the next token


def renew_after(lifetime: timedelta, *, jitter: float) -> timedelta:
    """Time after which a token is renewed: between 80 % and 84 % of its lifetime.

    A token is not used for longer than a day. The jitter, from 0 to 1, prevents that tokens that were requested
    together are renewed together.
    """
    microsecond = timedelta(microseconds=1)
    kept = min(lifetime // microsecond * 1000, _LONGEST_LIFETIME) * 80 // 100
    return timedelta(microseconds=max(kept + int(jitter * 0.05 * kept), 0) / 1000)


def renew_text(now: datetime, after: timedelta) -> str:
    return format_time(now + after)


# --- the ServiceAccount


def wanted_account(live: Object | None, spec: TokenSpec, *, merge_labels: bool) -> Object | None:
    """ServiceAccount to create or write; None if it is right as it is.

    With `merge_labels` an existing one keeps its other labels.
    """
    if live is None:
        meta = {"namespace": spec.account.namespace, "name": spec.account.name, "labels": dict(spec.labels)}
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False}
    having = labels(live)
    wanted = {**having, **spec.labels} if merge_labels else dict(spec.labels)
    if having == wanted and live.get("automountServiceAccountToken") is False:
        return None
    return {**live, "metadata": {**metadata(live), "labels": wanted}, "automountServiceAccountToken": False}
