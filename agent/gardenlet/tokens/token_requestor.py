"""The controller `token-requestor`: tokens of ServiceAccounts in the garden, for Secrets of the seed.

It handles Secrets of the class `garden`; the resource managers of Shoots handle others. The ServiceAccounts are always
in the namespace of the Seed, regardless of the Secret: a gardenlet may use no others. Tokens that the garden no longer
accepts are renewed with the annotation `gardener.cloud/operation: renew-garden-access-secrets` of the Seed.
"""

from agent.gardenlet.context import Context
from agent.shared.token_requestor import controller
from config.shared import TokenRequestor
from gardener import keys
from gardener.garden.seeds import namespace_of
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    settings = TokenRequestor(
        enabled=True,
        concurrent_syncs=context.config.controllers.token_requestor.concurrent_syncs,
        class_=keys.CLASS_GARDEN,
        audiences=(),
    )
    return controller.declare(
        settings,
        source=context.seed,
        target=context.garden,
        recorder=context.seed_recorder,
        metrics=context.metrics.tokens,
        service_account_namespace=namespace_of(context.seed_name),
        lenient=True,
    )
