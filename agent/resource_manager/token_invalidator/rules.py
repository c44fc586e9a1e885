"""Labels of the Secret of a ServiceAccount, and whether a Pod uses it."""

from dataclasses import dataclass

from gardener import keys
from kube.objects import Key, Object, annotations, key, labels, mappings, resource_version, text, uid
from kube.pod_references import slots
from kube.resources import SECRETS

SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
SERVICE_ACCOUNT_UID = "kubernetes.io/service-account.uid"
SECRET_TYPE = "kubernetes.io/service-account-token"

Labels = dict[str, str | None]
"""Changes of labels; None for a label to remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Cached part of a ServiceAccount."""

    uid: str
    automount: bool | None
    skip: str | None
    secrets: frozenset[str]
    """Names of the Secrets that it lists."""

    @classmethod
    def of(cls, obj: Object) -> "Account":
        listed = (text(reference.get("name")) for reference in mappings(obj.get("secrets")))
        automount = obj.get("automountServiceAccountToken")
        return cls(
            uid=uid(obj),
            automount=automount if isinstance(automount, bool) else None,
            skip=labels(obj).get(keys.TOKEN_INVALIDATOR_SKIP),
            secrets=frozenset(name for name in listed if name),
        )

    @property
    def wants_no_token(self) -> bool:
        return self.automount is False and self.skip is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Cached part of a Secret with the annotation of a token."""

    key: Key
    uid: str
    version: int
    account: str
    account_uid: str
    purpose: str | None
    considered: bool

    @classmethod
    def of(cls, secret: Object) -> "Labelled | None":
        having, annotated = labels(secret), annotations(secret)
        account = annotated.get(SERVICE_ACCOUNT_NAME) or ""
        if not account:
            return None
        return cls(
            key=key(secret),
            uid=uid(secret),
            version=resource_version(secret),
            account=account,
            account_uid=annotated.get(SERVICE_ACCOUNT_UID) or "",
            purpose=having.get(keys.PURPOSE),
            considered=keys.TOKEN_INVALIDATOR_CONSIDER in having,
        )

    @property
    def account_key(self) -> Key:
        return Key(self.key.namespace, self.account)


def belongs_to(secret: Labelled, account: Account) -> bool:
    """Whether the Secret belongs to the ServiceAccount, and not to a previous one, whose token is already invalid.

    A Secret gets the uid of its ServiceAccount together with its token, a moment after its creation.
    """
    return secret.account_uid in {"", account.uid}


def needed_labels(secret: Labelled, account: Account) -> Labels:
    """Return the changes of the labels, as long as no Pod uses the Secret."""
    changes: Labels = {}
    if secret.purpose is None:
        changes[keys.PURPOSE] = keys.PURPOSE_TOKEN_INVALIDATOR
    if account.wants_no_token and not secret.considered:
        changes[keys.TOKEN_INVALIDATOR_CONSIDER] = "true"
    if not account.wants_no_token and secret.considered:
        changes[keys.TOKEN_INVALIDATOR_CONSIDER] = None
    return changes


def deciding(account: Account) -> object:
    """Return the part of a ServiceAccount that the labels of its Secrets depend on."""
    return account.automount, account.skip, account.uid


# --- pods


def used_secrets(pod: Object) -> set[str]:
    """Return the Secrets that a Pod uses, unless it has finished."""
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return set()
    return {slot.name for slot in slots(pod.get("spec")) if slot.kind == SECRETS.kind}
