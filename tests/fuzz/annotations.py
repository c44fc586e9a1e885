"""Annotations that are parsed: durations, numbers, selectors, ports, names, times, lists, references.

The first byte chooses the annotation, or the kind of value; the rest is its text. Wrong ones are refused by the error that
the caller knows, in bounded time; right ones give values that can be used.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from agent.resource_manager.istio_cluster_configuration import rules as istio
from agent.resource_manager.istio_cluster_configuration.rules import EXPORT_TO
from agent.resource_manager.managed_resource.rules.invalid_update import PropagationPolicyError, propagation_policy
from agent.resource_manager.managed_resource.rules.permissions import identity_of
from agent.shared.network_policy.rules.policies import NAMESPACE_LABEL, Rules, Surroundings
from agent.shared.network_policy.rules.projections import Namespace, Service
from agent.shared.token_requestor.rules.renewal import renew_time
from agent.shared.token_requestor.rules.token_spec import InvalidSecretError, parse_token_spec
from agent.shared.token_requestor.token_secret import ANNOTATIONS
from config.resource_manager.restrictions import Impersonation
from gardener import keys
from gardener.managed_resource.dependencies import MOST, Dependencies
from gardener.managed_resource.ignored_fields import IgnoredFields, with_live_fields
from gardener.managed_resource.messages import refusal_message
from gardener.managed_resource.removal_rules import must_be_finalized
from gardener.managed_resource.warnings import all_warnings_text, annotation_warnings
from gardener.responsibility import parse_origin
from kit.network_policies import desired_policies
from kube.clock import format_duration, parse_duration
from kube.objects import Object
from kube.quantities import parse_quantity
from webhooks.admission import Refusal
from webhooks.handlers.high_availability_config import rules as high_availability
from webhooks.handlers.high_availability_config.rules import needed_replicas

_NOW = datetime(2030, 1, 1, tzinfo=UTC)
_LONGEST_MESSAGE = 1_000
_LONGEST_CONDITION = 20_000
_ALIAS = "networking.resources.gardener.cloud/from-all-scrape-targets-allowed-ports"


def target(data: bytes) -> None:
    if not data:
        return
    text = data[1:].decode(errors="ignore")
    _READERS[data[0] % len(_READERS)](text)


def _annotated(name: str, text: str, **more: str) -> Object:
    return {"metadata": {"namespace": "ns", "name": "n", "annotations": {name: text, **more}}}


# --- Services


def _policies(name: str) -> Callable[[str], None]:
    def read(text: str) -> None:
        obj = {**_annotated(name, text), "spec": {"selector": {"app": "a"}, "ports": [{"port": 80, "protocol": "TCP"}]}}
        service = Service.of(obj)
        for problem in service.settings.problems:
            assert problem.annotation == name
            assert len(problem.message) < _LONGEST_MESSAGE + len(text)
        around = Surroundings(
            namespaces={
                "ns": Namespace({NAMESPACE_LABEL: "ns"}, is_terminating=False),
                "other": Namespace({NAMESPACE_LABEL: "other", "a": "b"}, is_terminating=False),
            }
        )
        for policy in desired_policies(service, Rules(), around).policies.values():
            orjson.dumps(policy.spec)

    return read


def _exports(text: str) -> None:
    exported = istio.Service.of(_annotated(EXPORT_TO, text)).export_to
    assert all(name == name.strip() != "" for name in exported.names)


# --- Secrets that ask for tokens


def _token_spec(name: str) -> Callable[[str], None]:
    def read(text: str) -> None:
        right = {keys.SERVICE_ACCOUNT_NAME: "sa", keys.SERVICE_ACCOUNT_NAMESPACE: "ns", keys.TARGET_SECRET_NAME: "t"}
        right[keys.TARGET_SECRET_NAMESPACE] = "ns"
        try:
            spec = parse_token_spec({**right, name: text})
        except InvalidSecretError:
            return
        assert 600 <= spec.seconds <= 1 << 32
        assert spec.account.name
        assert "/" not in f"{spec.account.name}{spec.account.namespace}"
        assert all(isinstance(value, str) for value in spec.labels.values())

    return read


def _renewal(text: str) -> None:
    found = renew_time(text)
    assert found is None or found.tzinfo is not None
    assert found is None or isinstance(_NOW - found, timedelta)


# --- objects of ManagedResources


def _patience(text: str) -> None:
    obj = _annotated(keys.FINALIZE_DELETION_AFTER, text)
    obj["metadata"] |= {"deletionTimestamp": "2029-12-31T00:00:00Z", "finalizers": ["f"]}
    try:
        must_be_finalized(obj, now=_NOW)
        if text:
            _NOW + timedelta(seconds=parse_duration(text))
    except ValueError as error:
        assert str(error)


def _propagation(text: str) -> None:
    name = keys.DELETION_PROPAGATION_ON_INVALID_UPDATE
    with suppress(PropagationPolicyError):
        assert propagation_policy(_annotated(name, text), resource="r") == text


def _account(text: str) -> None:
    for impersonation in (Impersonation(), Impersonation(allowed_service_account_names=("a*",))):
        grant = identity_of(_annotated(keys.IMPERSONATED_SERVICE_ACCOUNT, text), impersonation)
        # It is never anybody else than a ServiceAccount of the same namespace, and never the agent itself.
        assert bool(grant.problem) != bool(grant.account)
        assert grant.account is None or (grant.account.namespace, grant.account.name) == ("ns", text)
        assert grant.user.count(":") in (0, 3)


def _origin(text: str) -> None:
    with suppress(ValueError):
        assert str(parse_origin(text)) in (text, text.removeprefix(":"))


def _dependencies(text: str) -> None:
    found = Dependencies.of(_annotated(keys.DEPENDS_ON, text), is_permitted=lambda namespace: namespace == "other")
    assert len(found.each) <= MOST
    assert {name.namespace for name in found.names} <= {"ns", "other"}
    assert len(refusal_message(found.problems)) < _LONGEST_CONDITION


def _ignored_fields(text: str) -> None:
    obj = _annotated(keys.IGNORE_DIFFERENCES, text)
    found = IgnoredFields.of(obj)
    assert len(refusal_message(found.problems)) < _LONGEST_CONDITION
    assert len(all_warnings_text({}, annotation_warnings(obj, []))) < _LONGEST_CONDITION
    live = {"kind": "n", "metadata": {"annotations": {"a": "b"}}, "spec": {"a": [{"b": 1}], "c": {}}}
    for rule in found.rules:
        merged = with_live_fields(obj, live, rule.pointers)
        assert merged["metadata"]["annotations"][keys.IGNORE_DIFFERENCES] == text
        orjson.dumps(merged)


# --- what webhooks read


def _zones(text: str) -> None:
    found = high_availability.requirements_of({keys.HIGH_AVAILABILITY_ZONES: text}).zones
    assert len(set(found)) == len(found)
    assert "" not in found


def _replicas(text: str) -> None:
    obj = _annotated(keys.HIGH_AVAILABILITY_REPLICAS, text)
    obj["metadata"]["labels"] = {keys.HIGH_AVAILABILITY_TYPE: "server"}
    try:
        number = needed_replicas(obj, 1, failure_tolerance=None)
    except Refusal:
        return
    assert number is not None
    assert 0 <= number < 2**31


# --- kinds of values


def _duration(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        assert len(str(error)) < _LONGEST_MESSAGE + 10 * len(text)
        return
    assert abs(seconds) <= 2**63 / 1e9
    if abs(seconds) < 2**62 / 1e9:  # beyond that, what a float is rounded to may be out of range
        assert abs(parse_duration(format_duration(seconds)) - seconds) <= 1e-6 * max(1.0, abs(seconds))


def _quantity(text: str) -> None:
    try:
        value = parse_quantity(text)
    except ValueError:
        return
    assert value.is_finite()
    assert (value < 1) in (True, False)


_READERS: list[Callable[[str], Any]] = [
    _policies(keys.NAMESPACE_SELECTORS),
    _policies(keys.FROM_WORLD),
    _policies(keys.NAMESPACE_ALIAS),
    _policies(_ALIAS),
    _exports,
    *(_token_spec(name) for name in sorted(set(ANNOTATIONS) - {keys.TOKEN_RENEW_TIMESTAMP})),
    _renewal,
    _patience,
    _propagation,
    _account,
    _origin,
    _zones,
    _replicas,
    _duration,
    _quantity,
    _dependencies,
    _ignored_fields,
]
