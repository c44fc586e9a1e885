"""Resources of a Shoot that are encrypted in etcd, and that have to be rewritten after a change of the list: pure.

The spec lists the resources to encrypt in addition to Secrets, the status the encrypted ones. In between, objects of
added and of removed resources are rewritten once, so that all of them are stored as the spec requires.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube.objects import Object, mapping, spec, texts
from kube.paths import at

KEY_NAME = "credentials.gardener.cloud/key-name"
"""Label of rewritten objects: the name of the Secret with the key."""
MARKS = "credentials.gardener.cloud/"
"""Prefix of annotations of the API server's Deployment that record the progress of a change; values are key names."""
_BY_OTHERS = "true"
"""Value that the original writes, without naming a key."""
POPULATED = f"{MARKS}new-encryption-key-populated"
"""All API servers know the new key."""
LABELED = f"{MARKS}resources-labeled"
"""All objects have been rewritten."""
SNAPSHOTTED = f"{MARKS}etcd-snapshotted"
"""The rewritten objects are in a backup."""
FORMER = f"{MARKS}formerly-encrypted"
"""Resources that are no longer encrypted, but can still be decrypted."""
_ALWAYS = "secrets"


@dataclass(frozen=True, slots=True)
class Encrypted:
    """Resources as `<plural>` or `<plural>.<group>`.

    Attributes:
        resources: to be encrypted.
        removed: no longer to be encrypted, but not yet rewritten.
        added: to be encrypted, but not yet rewritten.
    """

    resources: Sequence[str]
    removed: Sequence[str]
    added: Sequence[str]

    @property
    def changed(self) -> Sequence[str]:
        """Resources whose objects have to be rewritten."""
        return [*self.added, *self.removed]


def is_marked(marks: Mapping[str, str], mark: str, key_name: str) -> bool:
    """Args: marks: annotations. key_name: of the Secret with the current key."""
    return marks.get(mark) in {key_name, _BY_OTHERS}


def former(marks: Mapping[str, str]) -> list[str]:
    """Args: marks: annotations."""
    return [each for each in marks.get(FORMER, "").split(",") if each]


def listed(shoot: Object) -> list[str]:
    """Resources listed in the spec."""
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
    """Remove the dot of an empty group, which denotes the core group."""
    return resource.removesuffix(".")
