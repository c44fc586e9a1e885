"""The controller `gardenlet`: the Gardenlet with the name of the own Seed, on changes of its spec; then periodically.

Its deletion has no effect on the running gardenlet.
"""

from agent.gardenlet.common.charts.helm import Helm
from agent.gardenlet.common.charts.registry import Registry, with_credentials
from agent.gardenlet.common.views import own_gardenlet_view
from agent.gardenlet.context import Context
from agent.gardenlet.managed_seeds.installation.credentials import credentials_of
from agent.gardenlet.managed_seeds.installation.installation import Installer
from agent.gardenlet.managed_seeds.installation.target import Remembered, Target
from agent.gardenlet.managed_seeds.self_upgrade.reconcile import Reconciler
from gardener.api.garden import GARDENLETS
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import any_of, changed, listed
from kube.runtime.status import StatusWriter

NAME = "gardenlet"


def declare(context: Context) -> ControlLoop:
    return declare_with(context, Helm(), with_credentials())


def declare_with(context: Context, helm: Helm, registry: Registry) -> ControlLoop:
    loop, garden = ControlLoop(NAME, kind=GARDENLETS), context.garden
    asks = any_of(listed, changed("metadata.uid", "metadata.generation"))
    gardenlets = loop.watch(garden.caches, own_gardenlet_view(context.seed_name), enqueue(when=asks))
    return loop.reconciled_by(
        Reconciler(
            context=context,
            gardenlets=gardenlets,
            statuses=StatusWriter(garden.client, gardenlets),
            registry=registry,
            installer=Installer(helm=helm, credentials=credentials_of(context)),
            target=Target(
                client=context.seed.client, discovery=context.seed.discovery, cluster="", remembered=Remembered()
            ),
        )
    )
