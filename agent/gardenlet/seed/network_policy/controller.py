"""The controller `networkpolicy`: default policies of the seed's namespaces. A key is a namespace.

Namespaces        new ones, and changes of their labels
NetworkPolicies   with the names of these policies: changes by other clients are reverted
Endpoints         of the API server, and the addresses of its host name: all namespaces
Clusters          changed networks of the Shoot: the namespace of this name

It also runs where the seed is the garden. The configuration names the namespaces in which another program creates the
policies.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable

from agent.gardenlet.context import Context
from agent.gardenlet.seed.network_policy.reconcile import Reconciler
from agent.gardenlet.seed.network_policy.resolver import Resolve, Resolver, host_name, resolve
from agent.gardenlet.seed.network_policy.rules.networks import SeedNetworks
from agent.gardenlet.seed.network_policy.stores import Stores
from kube.resources import NAMESPACES
from kube.runtime.loop import ControlLoop

NAME = "networkpolicy"


def declare(
    context: Context,
    *,
    server: str = "",
    resolve: Resolve = resolve,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> ControlLoop:
    """Return the control loop; `server` is host and port of the API server, empty for those of the connection."""
    settings, seed = context.config.controllers.network_policy, context.seed
    loop = ControlLoop(NAME, kind=NAMESPACES, workers=settings.concurrent_syncs)
    stores = Stores(loop, seed)
    resolver = Resolver(
        host_name(server or seed.transport.host, os.environ), changed=stores.enqueue_all, resolve=resolve, sleep=sleep
    )
    loop.on_start(resolver.start)
    loop.on_close(resolver.close)
    return loop.reconciled_by(
        Reconciler(
            client=seed.client,
            stores=stores,
            resolver=resolver,
            networks=SeedNetworks.of(context.config.seed),
            additional=[each.as_object() for each in settings.additional_namespace_selectors],
            served_elsewhere=[each.as_object() for each in settings.namespaces_served_elsewhere],
            recorder=context.seed_recorder,
            reporter=NAME,
        )
    )
