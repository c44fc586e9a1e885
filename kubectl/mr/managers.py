"""Who writes an object again and again, so that what somebody else writes into it does not last."""

from gardener import keys
from kube.objects import Object, annotations, labels, mappings, metadata

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MANAGED_BY = "app.kubernetes.io/managed-by"
_LABELS = {
    "kustomize.toolkit.fluxcd.io/name": "the Kustomization {} of Flux",
    "helm.toolkit.fluxcd.io/name": "the HelmRelease {} of Flux",
    "argocd.argoproj.io/instance": "the Application {} of Argo CD",
}
_ANNOTATIONS = {
    keys.ORIGIN: "the ManagedResource {}",
    "argocd.argoproj.io/tracking-id": "Argo CD ({})",
    "meta.helm.sh/release-name": "the release {} of Helm",
}


def manager_of(obj: Object) -> str:
    """In words, empty if there is none: a controller that owns it, or a tool by its marks."""
    for owner in mappings(metadata(obj).get("ownerReferences")):
        return f"{owner.get('kind')} {owner.get('name')}"
    for marks, words in ((labels(obj), _LABELS), (annotations(obj), _ANNOTATIONS)):
        for mark, text in words.items():
            if marks.get(mark):
                return text.format(marks[mark])
    return labels(obj).get(_MANAGED_BY) or ""
