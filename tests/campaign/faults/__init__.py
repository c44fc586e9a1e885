"""Each fault is a context: it strikes on entry, and is healed on exit, whatever happened in between.

    network      between agents or webhooks and API servers: by the proxies
    processes    agents and webhooks themselves, their logs, clocks and lease
    clusters     API servers, etcd, kinds, namespaces
    renewals     tokens and certificates

Which process is the leader shows only when a fault strikes, so a plan can't name it.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from campaign.faults import clusters, network, processes, renewals
from campaign.stage import Stage

Note = str | Callable[[], str] | None
"""What is worth reporting, or what reports it afterwards."""
Inject = Callable[..., AbstractAsyncContextManager[Note]]
"""Of the stage and the settings of the strike."""

FAULTS: dict[str, Inject] = {
    "requests fail": network.requests_fail,
    "unreachable": network.unreachable,
    "connections dropped": network.connections_dropped,
    "watches end": network.watches_end,
    "agent killed": processes.agent_killed,
    "agent stopped": processes.agent_stopped,
    "agent frozen": processes.agent_frozen,
    "webhook killed": processes.webhook_killed,
    "webhook stopped": processes.webhook_stopped,
    "disk full for logs": processes.disk_full,
    "clock jumped": processes.clock_jumped,
    "lease disturbed": processes.lease_disturbed,
    "API server restarted": clusters.apiserver_restarted,
    "etcd restarted": clusters.etcd_restarted,
    "compacted": clusters.compacted,
    "kind deleted": clusters.kind_deleted,
    "namespace deleted": clusters.namespace_deleted,
    "objects changed by hand": clusters.objects_changed,
    "token rotated": renewals.token_rotated,
    "token expired": renewals.token_expired,
    "certificates rotated": renewals.certificates_rotated,
    "certificate broken": renewals.certificate_broken,
    "renewal times moved": renewals.renewal_times_moved,
}


def inject(stage: Stage, fault: str, settings: dict[str, Any]) -> AbstractAsyncContextManager[Note]:
    return FAULTS[fault](stage, **settings)
