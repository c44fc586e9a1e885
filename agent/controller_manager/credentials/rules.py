"""What credentials that bindings refer to are to be like.

    labels       of the kinds of bindings that refer to them, and of the providers that these name
    finalizer    while there is any binding

When there is no binding any more, the label of a kind of bindings tells, together with the finalizer, that there was
one. Others put the same finalizer, or users the label, on Secrets that no binding refers to; they are left alone there.
"""

from itertools import chain

from agent.controller_manager.common.rules.bindings import Bound, changes_of_labels, reference_labels
from agent.controller_manager.common.rules.credentials import Credentials
from gardener.garden.users import provider_types
from gardener.keys import CREDENTIALS_FINALIZER, PROVIDER_LABEL_PREFIX
from kube.objects import Object


def needed_changes(credentials: Credentials, bound: Bound[Object]) -> Object:
    """Changes of the metadata; empty: none."""
    bindings = list(chain.from_iterable(bound.values()))
    has_finalizer = CREDENTIALS_FINALIZER in credentials.finalizers
    were_bound = credentials.were_referred_to and has_finalizer
    if not (bindings or were_bound) or (credentials.is_deleting and not has_finalizer):
        return {}
    providers = {f"{PROVIDER_LABEL_PREFIX}{each}" for binding in bindings for each in provider_types(binding)}
    wanted = reference_labels(bound) | providers
    changes: Object = {}
    if changed := changes_of_labels(credentials.labels, wanted, owned=credentials.labels):
        changes["labels"] = changed
    if has_finalizer != bool(bindings):
        kept = [each for each in credentials.finalizers if each != CREDENTIALS_FINALIZER]
        changes["finalizers"] = [*kept, CREDENTIALS_FINALIZER] if bindings else kept or None
    return changes
