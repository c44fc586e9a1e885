"""Which resources of a Shoot are encrypted in etcd, and which have to be written anew since that has changed: pure.

The spec lists what is to be encrypted beside Secrets, the status what is. In between, objects of what was added and of
what was removed are written once, so that all of them are stored as the list says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube.objects import Object, mapping, spec, texts
from kube.paths import at

KEY_NAME = "credentials.gardener.cloud/key-name"
"""A label of objects that were written anew: the name of the Secret with the key."""
MARKS = "credentials.gardener.cloud/"
"""Begins annotations of the API server's Deployment that say how far a change has got, by the Secret of a key."""
_BY_OTHERS = "true"
"""As the original marks it, which does not say of which key."""
POPULATED = f"{MARKS}new-encryption-key-populated"
"""All API servers know the new key."""
LABELED = f"{MARKS}resources-labeled"
"""All objects were written anew."""
SNAPSHOTTED = f"{MARKS}etcd-snapshotted"
"""They are in a backup, too."""
FORMER = f"{MARKS}formerly-encrypted"
"""What is not encrypted any more, and can still be decrypted."""
_ALWAYS = "secrets"


@dataclass(frozen=True, slots=True)
class Encrypted:
    """As `<plural>` or `<plural>.<group>`.

    Attributes:
        resources: that are to be encrypted.
        removed: that are still encrypted, and are not to be.
        added: that are to be, and are not all encrypted yet.
    """

    resources: Sequence[str]
    removed: Sequence[str]
    added: Sequence[str]

    @property
    def changed(self) -> Sequence[str]:
        """Objects of these are to be written anew."""
        return [*self.added, *self.removed]


def is_marked(marks: Mapping[str, str], mark: str, key_name: str) -> bool:
    """Args: marks: annotations. key_name: of the Secret with the current key."""
    return marks.get(mark) in {key_name, _BY_OTHERS}


def former(marks: Mapping[str, str]) -> list[str]:
    """Args: marks: annotations."""
    return [each for each in marks.get(FORMER, "").split(",") if each]


def listed(shoot: Object) -> list[str]:
    """As the spec has it."""
    return texts(at(spec(shoot), "kubernetes", "kubeAPIServer", "encryptionConfig", "resources"))


def encrypted(shoot: Object) -> Encrypted:
    wanted, present = (
        dict.fromkeys(map(_without_dot, each))
        for each in (listed(shoot), texts(mapping(shoot.get("status")).get("encryptedResources")))
    )
    return Encrypted(
        resources=[_ALWAYS, *wanted],
        removed=[each for each in present if each not in wanted],
        added=[each for each in wanted if each not in present],
    )


def _without_dot(resource: str) -> str:
    """The core group may be written as an empty one."""
    return resource.removesuffix(".")
