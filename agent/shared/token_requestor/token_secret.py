"""Cached fields of a source Secret: everything that a decision needs, so that a check costs no request."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from gardener import keys
from kube.objects import Key, Object, annotations, is_deleting, key, labels, resource_version, string_map, uid
from kube.resources import SECRETS

ANNOTATIONS = (
    keys.SERVICE_ACCOUNT_NAME,
    keys.SERVICE_ACCOUNT_NAMESPACE,
    keys.SERVICE_ACCOUNT_LABELS,
    keys.TOKEN_EXPIRATION_DURATION,
    keys.TOKEN_RENEW_TIMESTAMP,
    keys.INJECT_CA_BUNDLE,
    keys.TARGET_SECRET_NAME,
    keys.TARGET_SECRET_NAMESPACE,
)

# --- keys in the data of Secrets
TOKEN = "token"
KUBECONFIG = "kubeconfig"
CA_BUNDLE = "bundle.crt"

DATA = (TOKEN, KUBECONFIG, CA_BUNDLE)

Data = Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSecret:
    """Source Secret; two are equal if no field that a decision reads differs."""

    key: Key
    uid: str
    version: int = field(compare=False)
    purpose: str | None
    class_: str | None
    annotations: Mapping[str, str]
    """Annotations of the token requestor."""
    deleting: bool
    encoded: Mapping[str, str] = field(repr=False)
    """Values of the keys that the token requestor knows, in base64."""

    @classmethod
    def of(cls, secret: Object) -> "TokenSecret":
        having, annotated, data = labels(secret), annotations(secret), string_map(secret.get("data"))
        return cls(
            key=key(secret),
            uid=uid(secret),
            version=resource_version(secret),
            purpose=having.get(keys.PURPOSE),
            class_=having.get(keys.CLASS),
            annotations={name: annotated[name] for name in ANNOTATIONS if name in annotated},
            deleting=is_deleting(secret),
            encoded={name: data[name] for name in DATA if name in data},
        )

    @property
    def data(self) -> Data:
        return decoded(self.encoded)

    @property
    def renew_timestamp(self) -> str:
        return self.annotations.get(keys.TOKEN_RENEW_TIMESTAMP) or ""

    def reference(self) -> Object:
        """Reference for Events."""
        return SECRETS.reference(namespace=self.key.namespace, name=self.key.name, uid=self.uid)


def decoded(data: Mapping[str, str]) -> Data:
    return {name: base64.b64decode(text) for name, text in data.items()}


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def label_selector(resource_class: str | None) -> str:
    """Selector of the Secrets of a class, or of all with and without one."""
    purpose = f"{keys.PURPOSE}={keys.PURPOSE_TOKEN_REQUESTOR}"
    return purpose if resource_class is None else f"{purpose},{keys.CLASS}={resource_class}"


def wants_token(secret: TokenSecret, *, resource_class: str | None) -> bool:
    """Whether the Secret gets a token. One in deletion gets none: it could not be used for long."""
    return (
        secret.purpose == keys.PURPOSE_TOKEN_REQUESTOR
        and (resource_class is None or secret.class_ == resource_class)
        and not secret.deleting
    )
