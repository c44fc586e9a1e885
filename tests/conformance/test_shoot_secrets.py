"""The Secrets of a Shoot without workers are those of the original: names, labels, and what certificates report.

Keys of RSA are not made here: the desired content of a certificate is in its config.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agent.gardenlet.shoot.main.rules import rotation
from components import registry
from components.secrets import labels as names
from components.secrets import tables
from components.secrets.configs import (
    Authority,
    Bundle,
    Config,
    Given,
    RSAKey,
    SignedCertificate,
)
from components.secrets.published import certificate_authority, client_authority
from components.secrets.rotation import Old
from components.secrets.shoot_rotation import rotations
from components.secrets.stored import Stored
from conformance.seed_objects import differences, normal, unhashed
from conformance.shoot_objects import (
    CREATED,
    NAMESPACE,
    in_the_garden,
    moments,
    of_the_secrets_manager,
    status_of_the_shoot,
)
from kube.objects import Object, labels

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CERTIFICATE = re.compile(r"<certificate (\{.*?\})>")
PLANE = tables.ControlPlane(
    namespace=NAMESPACE,
    domains=("api.a.local.internal.example.com", "a.local.external.example.com", "api.a.local.external.example.com"),
    service_addresses=("10.4.0.1",),
)
CONFIGS: tuple[Config, ...] = (
    *tables.authorities_of_a_shoot(has_workers=False),
    tables.SERVICE_ACCOUNT_KEY,
    tables.ENCRYPTION_KEY,
    tables.static_tokens(has_cluster_admin=False),
    tables.generic_token_kubeconfig(NAMESPACE, b"bundle"),
    *registry.secrets(PLANE),
)
BY_NAME = {config.name: config for config in CONFIGS}


def bundled() -> Iterator[str]:
    return (
        each.name for each in CONFIGS if isinstance(each, Authority) or (isinstance(each, RSAKey) and each.has_bundle)
    )


def recorded(config_name: str) -> Object:
    (found,) = (each for each in of_the_secrets_manager(CREATED) if labels(each)[names.NAME] == config_name)
    return found


def certificates(secret: Object, field: str) -> list[Object]:
    return [json.loads(each) for each in CERTIFICATE.findall(secret["data"][field])]


def made_labels(config: Config, *, until: datetime | None = None) -> dict[str, str]:
    """As the manager puts them on a Secret."""
    signed = "checksum" if isinstance(config, SignedCertificate) else ""
    found = names.of_secret(
        config.name,
        identity=names.GARDENLET,
        of_config="checksum",
        of_authority=signed,
        rotated="",
        persist=config.persist,
        bundle_for=config.of if isinstance(config, Bundle) else "",
    )
    return {**found, **names.of_life(NOW, until, renew_after_percentage=config.renew_after_percentage)}


def shown(found: dict[str, str]) -> dict[str, str]:
    """Labels, without what is counted or computed."""
    computed = {names.CHECKSUM_OF_CONFIG, names.CHECKSUM_OF_SIGNING_CA, names.ISSUED_AT, names.VALID_UNTIL}
    return {name: "" if name in computed else value for name, value in found.items()}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_a_secret_has_the_recorded_name_and_labels(config: Config) -> None:
    theirs = recorded(config.name)
    is_plain = isinstance(config, Authority) and config.has_plain_name
    name = names.secret_name(config.name, of_config="1", of_authority="", rotated="", is_plain=is_plain)
    assert unhashed(name) == unhashed(theirs["metadata"]["name"])
    until = NOW if isinstance(config, Authority | SignedCertificate) else None
    assert shown(made_labels(config, until=until)) == shown(labels(theirs))


@pytest.mark.parametrize("of", [*bundled()])
def test_a_bundle_has_the_recorded_labels(of: str) -> None:
    config = Bundle(name=f"{of}-bundle", of=of, field="bundle.crt", parts=())
    assert shown(made_labels(config)) == shown(labels(recorded(config.name)))


@pytest.mark.parametrize("config", registry.secrets(PLANE), ids=lambda config: config.name)
def test_a_certificate_reports_what_is_recorded(config: SignedCertificate) -> None:
    secret = recorded(config.name)
    certificate, *chain = certificates(secret, "tls.crt")
    uses = [("serverAuth", config.profile.is_server), ("clientAuth", config.profile.is_client)]
    assert secret["type"] == "kubernetes.io/tls"
    assert certificate["subject"] == f"CN={config.profile.common_name}"
    assert certificate["issuer"] == f"CN={config.authority}"
    assert certificate["extUsage"] == [use for use, is_one in uses if is_one]
    assert certificate["life"] == f"{config.lifetime.days}d"
    assert {*certificate.get("names", ())} == {*config.profile.names}
    assert not config.profile.organizations
    assert len(chain) == config.has_chain


@pytest.mark.parametrize("config", CONFIGS[6:9], ids=lambda config: config.name)
def test_other_secrets_have_the_recorded_fields(config: Config) -> None:
    assert config.make(Given("name", None, NOW)).data.keys() == recorded(config.name)["data"].keys()


def test_rotations_go_through_the_recorded_phases() -> None:
    shoot: Object = {"spec": {}, "status": {}}
    rotated = [each for each in moments() if each.startswith("rotate-")]
    assert len(rotated) == 6
    for moment in rotated:
        step = "start" if moment.endswith("-prepared") else "complete"
        operation = f"{moment.rpartition('-')[0]}-{step}"
        requested = {**shoot, "metadata": {"annotations": {"gardener.cloud/operation": operation}}}
        begun = {**shoot, "status": shoot["status"] | rotation.begun(requested, now=NOW)}
        shoot = {**shoot, "status": begun["status"] | rotation.ended(begun, begun["status"], now=NOW)}
        timeless = json.loads(re.sub(r'"2026-[^"]*"', '"<time>"', json.dumps(shoot["status"]["credentials"])))
        assert timeless == status_of_the_shoot(moment)["credentials"]


@pytest.mark.parametrize("moment", moments())
def test_while_something_is_rotated_there_are_two_of_it(moment: str) -> None:
    status = status_of_the_shoot(moment)
    found = rotations({"status": status}, has_static_kubeconfig=False)
    phases = {name: each["phase"] for name, each in status.get("credentials", {}).get("rotation", {}).items()}
    rotated = {each.name for each in CONFIGS if each.keeps_old and found.old(each) is Old.IN_USE} - {
        "generic-token-kubeconfig"  # it follows the bundle, and the one before stays for ever
    }
    assert bool(rotated) == ("Prepared" in phases.values())
    expected = Counter([*BY_NAME, *(f"{of}-bundle" for of in bundled()), *rotated])
    if "certificateAuthorities" in phases:
        expected["generic-token-kubeconfig"] += 1
    assert Counter(labels(each)[names.NAME] for each in of_the_secrets_manager(moment)) == expected


@pytest.mark.parametrize("moment", moments())
def test_users_find_the_recorded_objects_in_the_garden(moment: str) -> None:
    recorded_ = in_the_garden(moment)
    shoot = {"metadata": {"name": "a", "namespace": "garden-local", "uid": "uid"}}
    authority = Stored(name="ca-client", labels={}, data={"ca.crt": b"", "ca.key": b""})
    ours = [
        *certificate_authority(shoot, Stored(name="b", labels={}, data={"bundle.crt": b""})),
        client_authority(shoot, authority),
    ]
    theirs = {(kind, name): each for (kind, name), each in recorded_.items() if kind not in {"Shoot", "BackupEntry"}}
    assert {(each["kind"], each["metadata"]["name"]) for each in ours} == theirs.keys()
    for each in ours:
        assert not [*differences(normal(each), theirs[each["kind"], each["metadata"]["name"]])]
