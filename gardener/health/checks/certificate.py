"""Certificates and Issuers of Gardener's certificate management are healthy in the state `Ready`."""

from gardener.health.checks.rule import Rule, optional_condition, outdated, quoted, string
from kube.objects import Object


def _not_ready(obj: Object, what: str) -> str | None:
    state = string(obj, "status.state")
    return None if state == "Ready" else f'{what} state is {quoted(state)} ("Ready" expected)'


def health(certificate: Object) -> str | None:
    return optional_condition(certificate, "Ready", "True") or _not_ready(certificate, "certificate")


def issuer_health(issuer: Object) -> str | None:
    return _not_ready(issuer, "issuer")


RULE = Rule(group="cert.gardener.cloud", kind="Certificate", versions=("v1alpha1",), health=health, progress=outdated)
ISSUER_RULE = Rule(
    group="cert.gardener.cloud", kind="Issuer", versions=("v1alpha1",), health=issuer_health, progress=outdated
)
