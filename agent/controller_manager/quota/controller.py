"""The controller `quota`: a Quota that bindings refer to is labelled, and not deleted."""

from functools import partial

from agent.controller_manager.common.api import BY_QUOTA, CREDENTIALS_BINDINGS_VIEW, QUOTAS_VIEW, SECRET_BINDINGS_VIEW
from agent.controller_manager.common.protection import Protection, Users
from agent.controller_manager.context import Context
from agent.controller_manager.quota.reconcile import Reconciler
from gardener.garden.resources import QUOTAS
from gardener.garden.users import listed
from kube.loop import ControlLoop, changed_or_listed, enqueue
from kube.objects import Key


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.quota, context.garden.caches
    loop = ControlLoop("quota", kind=QUOTAS, workers=settings.concurrent_syncs)
    quotas = loop.watch(caches, QUOTAS_VIEW, enqueue(when=changed_or_listed))
    secret_bindings = Users(loop, caches, SECRET_BINDINGS_VIEW, BY_QUOTA)
    credentials_bindings = Users(loop, caches, CREDENTIALS_BINDINGS_VIEW, BY_QUOTA)
    protection = Protection(
        context,
        quotas,
        users=(secret_bindings, credentials_bindings),
        held_by=partial(_held_by, secret_bindings, credentials_bindings),
        event="Normal",
        reporter="quota-controller",
    )
    return loop.reconciled_by(
        Reconciler(
            client=context.garden.client,
            quotas=quotas,
            secret_bindings=secret_bindings,
            credentials_bindings=credentials_bindings,
            protection=protection,
        )
    )


def _held_by(secret_bindings: Users, credentials_bindings: Users, name: Key) -> str:
    secrets, credentials = secret_bindings.of(name), credentials_bindings.of(name)
    if not secrets and not credentials:
        return ""
    return (
        "Cannot delete Quota, because the following resources are still referencing it: "
        f"SecretBindings - {listed(secrets)}, CredentialsBindings - {listed(credentials)}"
    )
