"""The controllers of what bindings refer to, of which only metadata are watched.

Secrets, WorkloadIdentities   that have labels of bindings, or should have
bindings of both kinds        that come, change or go: what they refer to
"""

from functools import partial

from agent.controller_manager.common.api import BY_SECRET, BY_WORKLOAD_IDENTITY, SECRETS_VIEW, WORKLOAD_IDENTITIES_VIEW
from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.context import Context
from agent.controller_manager.credentials.bindings import Bindings
from agent.controller_manager.credentials.reconcile import Reconciler
from agent.controller_manager.credentials.rules import needed_changes
from gardener.garden import users
from gardener.garden.users import References
from kube.cache import Change, View
from kube.loop import ControlLoop, enqueue


def declare_secrets(context: Context) -> ControlLoop:
    return _declare(context, SECRETS_VIEW, users.secrets, index=BY_SECRET)


def declare_workload_identities(context: Context) -> ControlLoop:
    return _declare(context, WORKLOAD_IDENTITIES_VIEW, users.workload_identities, index=BY_WORKLOAD_IDENTITY)


def _declare(context: Context, view: View[Credentials], references: References, *, index: str) -> ControlLoop:
    kind = view.resource
    controllers, caches = context.config.controllers, context.garden.caches
    workers = max(controllers.credentials_binding.concurrent_syncs, controllers.secret_binding.concurrent_syncs)
    loop = ControlLoop(f"credentials-{kind.kind.lower()}", kind=kind, workers=workers)
    bindings = Bindings(loop, caches, references, index=index)
    credentials = loop.watch(caches, view, enqueue(when=partial(_is_to_change, bindings)))
    return loop.reconciled_by(Reconciler(client=context.garden.client, credentials=credentials, bindings=bindings))


def _is_to_change(bindings: Bindings, change: Change[Credentials]) -> bool:
    """A finalizer that is taken off by hand is not put back at once: who does that wants the object to go."""
    old, new = change.old, change.new
    if new is None or (not change.initial and old is not None and old.labels == new.labels):
        return False
    return bool(needed_changes(new, bindings.of(change.key)))
