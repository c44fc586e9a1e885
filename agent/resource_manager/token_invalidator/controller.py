"""The controller `token-invalidator`: labels Secrets according to their ServiceAccount's settings.

    Secrets           with the annotation of a token
    ServiceAccounts   with changed settings: the Secrets that refer to it, and those that it lists

Everything happens in the target cluster, like the webhook of the same name.
"""

from functools import partial

from agent.resource_manager.context import Context
from agent.resource_manager.token_invalidator.reconcile import Reconciler
from agent.resource_manager.token_invalidator.rules import Account, Labelled, deciding
from kube.objects import Key
from kube.resources import SECRETS, SERVICE_ACCOUNTS
from kube.runtime.cache import Change, Store, View
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Predicate, all_of, changed, exists

_BY_ACCOUNT = "account"


def _account_of(secret: Labelled | None) -> tuple[Key, ...]:
    return () if secret is None else (secret.account_key,)


_SECRETS_VIEW = View(SECRETS, Labelled.of, form=Form.METADATA, indexes=((_BY_ACCOUNT, _account_of),))
_ACCOUNTS_VIEW = View(SERVICE_ACCOUNTS, Account.of)

affects_secrets: Predicate[Account] = all_of(exists, changed(deciding))
"""The deletion of a ServiceAccount affects none: Kubernetes removes its Secrets."""


def declare(context: Context) -> ControlLoop:
    settings, target = context.config.controllers.token_invalidator, context.target
    loop = ControlLoop("token-invalidator", kind=SECRETS, workers=max(settings.concurrent_syncs, 1))
    secrets = loop.watch(target.caches, _SECRETS_VIEW, enqueue(when=exists))
    accounts = loop.watch(
        target.caches, _ACCOUNTS_VIEW, enqueue_mapped(partial(_secrets_of, secrets), when=affects_secrets)
    )
    return loop.reconciled_by(Reconciler(client=target.client, secrets=secrets, accounts=accounts))


def _secrets_of(secrets: Store[Labelled | None], change: Change[Account]) -> list[Key]:
    listed = frozenset[str]().union(*(account.secrets for account in (change.old, change.new) if account is not None))
    named = set(secrets.keys_by_index(_BY_ACCOUNT, change.key))
    return sorted(named | {Key(change.key.namespace, name) for name in listed})
