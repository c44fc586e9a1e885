"""The controller `networkpolicy`: policies that namespaces of the seed have, whatever is in them.

A key is a namespace.

Namespaces        that come, and changes of their labels
NetworkPolicies   with the names of these policies: what somebody changes is restored
Endpoints         of the API server, and what its host name resolves to: all namespaces
Clusters          whose Shoot has other networks: the namespace of this name

It runs also where the seed is the garden. Another program makes the policies only where the configuration says so.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable

from agent.gardenlet.context import Context
from agent.gardenlet.network_policy.reconcile import Reconciler
from agent.gardenlet.network_policy.resolver import Resolve, Resolver, host_name, resolve
from agent.gardenlet.network_policy.rules.networks import SeedNetworks
from agent.gardenlet.network_policy.stores import Stores
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
    """Args: server: host and port of the seed's API server; empty: those of the connection."""
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
