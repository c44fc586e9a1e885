"""What is removed from the cluster of a Shoot before it goes, and when a token needs a certificate, by tables."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.gardenlet.shoot.main.rules import token_bootstrap
from agent.gardenlet.shoot.main.rules.cleanup import (
    EXTENDED_APIS,
    VOLUME_SNAPSHOTS,
    WEBHOOKS,
    WORKLOADS,
    Kind,
    is_overdue,
    is_spared,
    kinds,
)
from gardener import keys
from kube.clock import format_time
from kube.objects import Object
from kube.resources import API_SERVICES, CRON_JOBS, NAMESPACES, SERVICES, VOLUME_CLAIMS, Resource

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)


def _shoot(**annotations: str) -> Object:
    return {
        "metadata": {"annotations": {f"shoot.gardener.cloud/{k.replace('_', '-')}": v for k, v in annotations.items()}}
    }


def _obj(name: str = "o", **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}}


SYSTEM: Any = {"gardener.cloud/role": "system-component"}
KEPT: Any = {"shoot.gardener.cloud/no-cleanup": "true"}
OWN_API: Any = {"kube-aggregator.kubernetes.io/automanaged": "onstart"}


@pytest.mark.parametrize(
    ("resource", "obj", "spared"),
    [
        (CRON_JOBS, _obj(), False),
        (CRON_JOBS, _obj(**SYSTEM), True),
        (CRON_JOBS, _obj(**KEPT), True),
        (API_SERVICES, _obj(**KEPT), False),
        (API_SERVICES, _obj(**SYSTEM), True),
        (API_SERVICES, _obj(**OWN_API), True),
        (SERVICES, _obj("kubernetes"), True),
        (SERVICES, _obj("other"), False),
    ],
)
def test_what_is_spared(resource: Resource, obj: Object, spared: bool) -> None:
    assert is_spared(resource, obj) is spared


def _of(resource: Resource, among: tuple[Kind, ...]) -> Kind:
    return next(each for each in among if each.resource == resource)


SECONDS = "finalize_grace_period_seconds"


@pytest.mark.parametrize(
    ("kind", "shoot", "seconds"),
    [
        (WEBHOOKS[0], _shoot(), 300),
        (WEBHOOKS[0], _shoot(**{f"cleanup_webhooks_{SECONDS}": "60"}), 60),
        (EXTENDED_APIS[0], _shoot(), 3600),
        (EXTENDED_APIS[0], _shoot(**{f"cleanup_extended_apis_{SECONDS}": "60"}), 6),
        (_of(CRON_JOBS, WORKLOADS), _shoot(**{f"cleanup_kubernetes_resources_{SECONDS}": "60"}), 60),
        (_of(VOLUME_SNAPSHOTS, WORKLOADS), _shoot(**{f"cleanup_kubernetes_resources_{SECONDS}": "60"}), 30),
        (_of(CRON_JOBS, WORKLOADS), _shoot(**{f"cleanup_kubernetes_resources_{SECONDS}": "soon"}), 300),
    ],
)
def test_how_long_it_may_take(kind: Kind, shoot: Object, seconds: int) -> None:
    assert kind.patience(shoot) == timedelta(seconds=seconds)


def test_users_may_have_only_that_removed_which_costs_money() -> None:
    left = {each.resource for each in kinds([*WEBHOOKS, *EXTENDED_APIS, *WORKLOADS], _shoot(skip_cleanup="true"))}
    assert left > {SERVICES, VOLUME_CLAIMS, VOLUME_SNAPSHOTS}
    assert not left & {CRON_JOBS, API_SERVICES}


def test_namespaces_stay() -> None:
    assert NAMESPACES not in {each.resource for each in (*WEBHOOKS, *EXTENDED_APIS, *WORKLOADS)}


@pytest.mark.parametrize(("ago", "overdue"), [(None, False), (299, False), (301, True)])
def test_what_is_overdue(ago: int | None, overdue: bool) -> None:
    since = {} if ago is None else {"deletionTimestamp": format_time(NOW - timedelta(seconds=ago))}
    assert is_overdue({"metadata": since}, timedelta(minutes=5), now=NOW) is overdue


# --- the first token of the resource manager


def _access(ahead: int | None) -> Object:
    notes = {} if ahead is None else {keys.TOKEN_RENEW_TIMESTAMP: format_time(NOW + timedelta(seconds=ahead))}
    return {"metadata": {"annotations": notes}}


def _managed(message: str = "") -> Object:
    return {"status": {"conditions": [{"type": "ResourcesApplied", "status": "False", "message": message}]}}


@pytest.mark.parametrize(
    ("access", "managed", "needed"),
    [
        (_access(60), _managed(), False),
        (None, _managed(), True),
        (_access(None), _managed(), True),
        (_access(-1), _managed(), True),
        (_access(60), None, True),
        (_access(60), _managed("it says: Unauthorized"), True),
        (
            _access(60),
            _managed('forbidden: User "system:serviceaccount:kube-system:gardener-resource-manager" cannot get x'),
            True,
        ),
        (_access(60), _managed("forbidden: somebody else"), False),
    ],
)
def test_when_a_certificate_is_needed(access: Object | None, managed: Object | None, needed: bool) -> None:
    assert token_bootstrap.is_needed(access, managed, now=NOW) is needed
