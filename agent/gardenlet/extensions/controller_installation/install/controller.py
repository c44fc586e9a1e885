"""The controller `controllerinstallation`: installs extensions in the seed.

ControllerInstallations  of the own Seed: new ones, deletions, and changed versions of references
ControllerDeployments    new or changed ones: all their installations
ControllerRegistrations  new ones: all their installations
Seed                     the own one, when it gets an identity: all installations
Namespaces               of extensions in the seed: deleted ones
"""

from collections.abc import Callable
from typing import Any

from agent.gardenlet.common.charts.helm import Helm
from agent.gardenlet.common.views import CONTROLLER_REGISTRATIONS_VIEW, SEEDS_VIEW, controller_installations_view
from agent.gardenlet.context import Context
from agent.gardenlet.extensions.controller_installation.install.charts import Charts
from agent.gardenlet.extensions.controller_installation.install.deployments import Deployments
from agent.gardenlet.extensions.controller_installation.install.reconcile import Reconciler
from gardener import keys
from gardener.api.garden import CONTROLLER_INSTALLATIONS
from gardener.garden.extensions import installation_of
from kube.objects import Key, Object, is_deleting, key, text, uid
from kube.paths import at
from kube.resources import NAMESPACES
from kube.runtime.cache import Change, View
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, always, enqueue_mapped, enqueue_own, enqueue_users
from kube.runtime.predicates import Predicate, all_of, any_of, came, changed, exists, listed, went
from kube.runtime.status import StatusWriter

_REGISTRATION = ("spec", "registrationRef", "name")
_NAMESPACES_VIEW = View(NAMESPACES, uid, form=Form.METADATA, label_selector=f"{keys.ROLE}={keys.ROLE_EXTENSION}")


def _installation_in(change: Change[Any]) -> list[Key]:
    return [Key("", installation_of(change.key.name))]


def declare(context: Context) -> ControlLoop:
    return declare_with(context, Helm())


def declare_with(context: Context, helm: Helm) -> ControlLoop:
    settings, garden = context.config.controllers.controller_installation, context.garden
    loop = ControlLoop("controllerinstallation", kind=CONTROLLER_INSTALLATIONS, workers=settings.concurrent_syncs)
    asks: Predicate[Object] = changed(
        "metadata.uid",
        is_deleting,
        "spec.deploymentRef",
        "spec.registrationRef.resourceVersion",
        "spec.seedRef.resourceVersion",
    )
    installations = loop.watch(
        garden.caches,
        controller_installations_view(context.seed_name),
        enqueue_own(always, when=any_of(listed, asks)),
    )

    def referring(*path: str) -> Callable[[Key], list[Key]]:
        def names(referred: Key) -> list[Key]:
            return [key(each) for each in installations.values() if text(at(each, *path)) == referred.name]

        return names

    def all_of_seed(seed: Key) -> list[Key]:
        return [key(each) for each in installations.values()] if seed.name == context.seed_name else []

    registrations = loop.watch(
        garden.caches, CONTROLLER_REGISTRATIONS_VIEW, enqueue_users(referring(*_REGISTRATION), when=came)
    )
    seeds = loop.watch(
        garden.caches,
        SEEDS_VIEW,
        enqueue_users(all_of_seed, when=all_of(exists, changed("status.clusterIdentity"))),
    )
    loop.watch(context.seed.caches, _NAMESPACES_VIEW, enqueue_mapped(_installation_in, when=went))
    return loop.reconciled_by(
        Reconciler(
            context=context,
            installations=installations,
            deployments=Deployments(loop, garden.caches, installations),
            registrations=registrations,
            seeds=seeds,
            statuses=StatusWriter(garden.client, installations),
            charts=Charts(helm),
        )
    )
