"""Who serves the domains of a Shoot, and which Extension objects it has, by tables."""

from typing import Any

import pytest

from agent.gardenlet.shoot.main.rules import domains
from agent.gardenlet.shoot.main.rules.domains import DomainError
from agent.gardenlet.shoot.main.rules.extensions import Stage, wanted
from kube.objects import Object


def _secret(role: str, domain: str, *, zone: str = "") -> Object:
    notes = {"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": domain}
    notes |= {"dns.gardener.cloud/zone": zone} if zone else {}
    meta: Object = {"name": f"{role}-secret", "labels": {"gardener.cloud/role": role}, "annotations": notes}
    return {"metadata": meta, "data": {"token": "dG9rZW4="}}


def _shoot(**spec: Any) -> Object:
    return {"metadata": {"name": "s", "namespace": "garden-dev"}, "spec": spec}


# --- domains


@pytest.mark.parametrize(
    ("domain", "expected"),
    [("internal.example.com", "api.s.dev.internal.example.com"), ("example.com", "api.s.dev.internal.example.com")],
)
def test_internal_domain(domain: str, expected: str) -> None:
    served = domains.internal([_secret("internal-domain", domain, zone="z")], shoot="s", project="dev")
    assert (served.host, served.provider, served.zone) == (expected, "local", "z")
    assert served.credentials == {"token": "dG9rZW4="}
    assert "dG9rZW4=" not in repr(served)


def test_there_has_to_be_an_internal_domain() -> None:
    with pytest.raises(DomainError, match="need an internal domain secret but found none"):
        domains.internal([_secret("default-domain", "example.com")], shoot="s", project="dev")


def test_domain_below_a_default_domain() -> None:
    secrets = [_secret("internal-domain", "internal.a.com"), _secret("default-domain", "a.com", zone="z")]
    served = domains.external(_shoot(dns={"domain": "s.dev.a.com"}), secrets)
    assert served is not None
    assert (served.host, served.provider, served.zone) == ("api.s.dev.a.com", "local", "z")
    assert domains.external(_shoot(dns={"domain": "s.other.com"}), secrets) is None
    assert domains.external(_shoot(dns={"domain": "xa.com"}), secrets) is None


OWN = {"type": "aws", "secretName": "dns", "primary": True, "zones": {"include": ["z1"]}}


@pytest.mark.parametrize(
    ("provider", "name"),
    [(OWN, "dns"), ({"type": "aws", "credentialsRef": {"kind": "Secret", "name": "other"}}, "other")],
)
def test_credentials_of_its_own_provider(provider: Object, name: str) -> None:
    shoot = _shoot(dns={"domain": "s.com", "providers": [{"type": "x"}, provider | {"primary": True}]})
    assert domains.credentials_of(shoot) == name
    served = domains.own(shoot, {"data": {"k": "dg=="}})
    assert (served.host, served.provider) == ("api.s.com", "aws")


@pytest.mark.parametrize(
    "provider",
    [{}, {"type": "aws"}, {"secretName": "dns"}, {"type": "a", "credentialsRef": {"kind": "X", "name": "n"}}],
)
def test_domain_that_no_one_serves_is_an_error_of_the_user(provider: Object) -> None:
    with pytest.raises(DomainError) as raised:
        domains.credentials_of(_shoot(dns={"domain": "s.com", "providers": [provider]}))
    assert raised.value.codes == ("ERR_CONFIGURATION_PROBLEM",)


@pytest.mark.parametrize("dns", [{}, {"domain": "s.com", "providers": [{"type": "unmanaged"}]}])
def test_no_domain_of_its_own(dns: Object) -> None:
    assert domains.own_domain(_shoot(dns=dns)) == ""


# --- extensions


def _registration(*resources: Object) -> Object:
    return {"spec": {"resources": [{"kind": "Extension", **each} for each in resources]}}


def test_extensions_that_a_shoot_requests() -> None:
    shoot = _shoot(
        extensions=[{"type": "a"}, {"type": "b", "providerConfig": {"x": 1}}, {"type": "c", "disabled": True}]
    )
    found = wanted(
        shoot,
        [
            _registration(
                {"type": "b", "lifecycle": {"reconcile": "BeforeKubeAPIServer"}, "reconcileTimeout": "10m0s"},
                {"type": "c"},
            )
        ],
    )
    assert list(found) == ["a", "b"]
    assert (found["a"].reconciled, found["a"].seconds) == (Stage.AFTER_API_SERVER, 180)
    assert (found["b"].reconciled, found["b"].seconds) == (Stage.BEFORE_API_SERVER, 600)
    assert found["a"].deleted is found["a"].migrated is Stage.BEFORE_API_SERVER
    assert found["b"].manifest("shoot--dev--s")["spec"] == {"type": "b", "providerConfig": {"x": 1}}


@pytest.mark.parametrize(
    ("spec", "types"),
    [
        ({"provider": {"workers": [{"name": "w"}]}}, ["all", "workers"]),
        ({"provider": {}}, ["all"]),
        ({"provider": {}, "extensions": [{"type": "all", "disabled": True}]}, []),
    ],
)
def test_extensions_of_all_shoots(spec: Object, types: list[str]) -> None:
    registration = _registration(
        {"type": "all", "globallyEnabled": True, "workerlessSupported": True},
        {"type": "workers", "globallyEnabled": True},
        {"type": "asked"},
    )
    assert sorted(wanted(_shoot(**spec), [registration])) == types
