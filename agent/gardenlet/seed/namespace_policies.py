"""Cached fields of the seed's namespaces, and of the policies in them that the gardenlet creates.

Policies with the description annotation were created by a gardenlet, this one or the original's; others of the same
name have another owner.
"""

from dataclasses import dataclass

from agent.shared.network_policy.rules.projections import Namespace, policy_digest
from gardener import keys
from gardener.network_policies import NAMES
from kube.objects import Object, annotations, key, metadata, spec, text, uid
from kube.resources import NAMESPACES, NETWORK_POLICIES
from kube.runtime.cache import View
from kube.runtime.client import Form


@dataclass(frozen=True, slots=True)
class ExistingPolicy:
    """A policy with the name of one that the gardenlet creates."""

    uid: str
    version: str
    digest: bytes
    """Digest of description and spec."""
    is_marked: bool
    """Whether a gardenlet has created it."""

    @classmethod
    def of(cls, obj: Object) -> "ExistingPolicy | None":
        """Return the policy; None if it has another name."""
        if key(obj).name not in NAMES:
            return None
        description = annotations(obj).get(keys.GARDENER_DESCRIPTION)
        return cls(
            uid=uid(obj),
            version=text(metadata(obj).get("resourceVersion")),
            digest=policy_digest(description, spec(obj)),
            is_marked=description is not None,
        )


NAMESPACES_VIEW = View(NAMESPACES, Namespace.of, form=Form.METADATA)
POLICIES_VIEW = View(
    NETWORK_POLICIES,
    ExistingPolicy.of,
    # Most policies are those of the resource manager, for Services.
    label_selector=f"!{keys.POLICY_SERVICE_NAME}",
)
