"""A real API server takes what is generated, and gets no write that changes nothing."""

import base64
import datetime
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from config.resource_manager import decode
from devcluster.cluster import Cluster
from kit.objects import secret
from kit.world import Place
from kube.errors import NotFound
from kube.objects import Object, metadata
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from kube.runtime.client import Client
from kube.x509 import make_ca
from webhooks.certificates.rules import CA_LIFETIME
from webhooks.configurations import command
from webhooks.configurations.install import install
from webhooks.configurations.objects import CaBundle, Service, Url, name_of
from webhooks.configurations.registrations import configurations
from webhooks.rules.registration import Instance, Mode

KEYS = (
    "crdDeletionProtection",
    "endpointSliceHints",
    "extensionValidation",
    "highAvailabilityConfig",
    "podKubeAPIServerLoadBalancing",
    "podSchedulerName",
    "podTopologySpreadConstraints",
    "projectedTokenMount",
    "seccompProfile",
    "systemComponentsConfig",
    "vpaInPlaceUpdates",
)
ALL: Object = {key: {"enabled": True} for key in KEYS} | {
    "kubernetesServiceHost": {"enabled": True, "host": "api.example.com"},
    "tokenInvalidator": {"enabled": True},
}
UNUSED = "unused.invalid"
"""No namespace and no object of other tests has this label, so that they never meet our webhooks."""


@pytest.fixture
def prefix(cluster: Cluster) -> Iterator[str]:
    """A prefix of the test's own; what was installed under it goes after the test."""
    own = f"t{uuid.uuid4().hex[:8]}-"
    yield own
    for mode in Mode:
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            Place(cluster, "").remove(resource, name_of(Instance(mode=mode, prefix=own)))


@pytest.fixture(scope="module")
def ca() -> bytes:
    return make_ca("test", now=datetime.datetime.now(datetime.UTC), lifetime=CA_LIFETIME).certificate_pem


def generated(instance: Instance, ca: bytes, *, combined: bool = False, harmless: bool = True) -> list[Object]:
    webhooks = decode(yaml.safe_dump({"webhooks": ALL})).config.webhooks
    address = Url("https://127.0.0.1:1") if instance.mode is Mode.TARGET else Service("garden", "grm")
    objects = configurations(webhooks, instance, address=address, trust=CaBundle(ca), combined=combined)
    return [without_effect(obj) for obj in objects] if harmless else objects


def without_effect(obj: Object) -> Object:
    for webhook in obj["webhooks"]:
        webhook["objectSelector"].setdefault("matchLabels", {})[UNUSED] = "x"
    return obj


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("combined", [False, True])
def test_the_api_server_takes_all_that_is_generated(
    cluster: Cluster, prefix: str, ca: bytes, mode: Mode, combined: bool
) -> None:
    for obj in generated(Instance(mode=mode, prefix=prefix), ca, combined=combined, harmless=False):
        resource = MUTATING_WEBHOOKS if obj["kind"] == MUTATING_WEBHOOKS.kind else VALIDATING_WEBHOOKS
        taken = cluster.api.create(f"{resource.path()}?dryRun=All", obj)
        assert [webhook["name"] for webhook in taken["webhooks"]] == [webhook["name"] for webhook in obj["webhooks"]]


@pytest.mark.parametrize("mode", list(Mode))
async def test_installing_again_writes_nothing(client: Client, prefix: str, ca: bytes, mode: Mode) -> None:
    instance = Instance(mode=mode, prefix=prefix)
    kinds = [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS] if mode is Mode.RUNTIME else [MUTATING_WEBHOOKS]
    first = await install(client, instance, generated(instance, ca))
    assert [done.what for done in first] == ["created"] * len(kinds)
    before = [await client.get(kind, name_of(instance)) for kind in kinds]
    second = await install(client, instance, generated(instance, ca))
    assert [done.what for done in second] == ["unchanged"] * len(kinds)
    after = [await client.get(kind, name_of(instance)) for kind in kinds]
    assert [metadata(obj)["resourceVersion"] for obj in after] == [metadata(obj)["resourceVersion"] for obj in before]


async def test_what_differs_is_restored_and_what_others_noted_stays(client: Client, prefix: str, ca: bytes) -> None:
    instance = Instance(mode=Mode.RUNTIME, prefix=prefix)
    wanted = generated(instance, ca)
    await install(client, instance, wanted)
    changed = await client.get(MUTATING_WEBHOOKS, name_of(instance))
    changed["webhooks"][0]["timeoutSeconds"] = 3
    changed["metadata"]["annotations"] = {"note": "mine"}
    await client.replace(MUTATING_WEBHOOKS, changed)
    done = await install(client, instance, wanted)
    assert [one.what for one in done] == ["changed", "unchanged"]
    live = await client.get(MUTATING_WEBHOOKS, name_of(instance))
    assert live["webhooks"][0]["timeoutSeconds"] == 10
    assert live["metadata"]["annotations"] == {"note": "mine"}


async def test_what_is_not_generated_any_more_is_removed_if_it_is_ours(client: Client, prefix: str, ca: bytes) -> None:
    instance = Instance(mode=Mode.RUNTIME, prefix=prefix)
    wanted = generated(instance, ca)
    await install(client, instance, wanted)
    other = Instance(mode=Mode.TARGET, prefix=prefix)
    await install(client, other, generated(other, ca))

    done = await install(client, instance, wanted[:1])
    assert [str(one) for one in done] == [
        f"MutatingWebhookConfiguration {prefix}gardener-resource-manager: unchanged",
        f"ValidatingWebhookConfiguration {prefix}gardener-resource-manager: removed",
    ]
    with pytest.raises(NotFound):
        await client.get(VALIDATING_WEBHOOKS, name_of(instance))

    await client.patch(MUTATING_WEBHOOKS, name_of(instance), {"metadata": {"labels": {"app": "other"}}})
    (left,) = await install(client, instance, [])
    assert "kept" in left.what
    assert await client.get(MUTATING_WEBHOOKS, name_of(instance))
    assert await client.get(MUTATING_WEBHOOKS, name_of(other)), "another instance's is not ours to remove"
    assert await install(client, Instance(mode=Mode.RUNTIME, prefix=f"{prefix}x-"), []) == []


@pytest.mark.parametrize("by_secret", [False, True])
def test_the_command_installs_what_is_enabled(
    cluster: Cluster,
    namespace: str,
    prefix: str,
    ca: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    by_secret: bool,
) -> None:
    # Only VerticalPodAutoscalers in kube-system are queried about: no other test has any.
    webhooks = {"vpaInPlaceUpdates": {"enabled": True}}
    config = {"leaderElection": {"resourceNamespace": namespace}, "webhooks": webhooks}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "ca.crt").write_bytes(ca)
    arguments = ["--config", str(tmp_path / "config.yaml"), "--prefix", prefix, "--mode", "target", "--install"]
    environment = {"KUBECONFIG": str(cluster.kubeconfig)}
    name = f"{prefix}gardener-resource-manager-shoot"
    trust = ["--ca-secret", f"{namespace}/ca"] if by_secret else ["--ca-file", str(tmp_path / "ca.crt")]
    if by_secret:
        assert command.main([*arguments, *trust], environment=environment) == 1
        assert 'secret "ca" not found' in capsys.readouterr().err
        with pytest.raises(NotFound):
            cluster.api.get(MUTATING_WEBHOOKS.path(name=name))
        Place(cluster, namespace).create(secret("ca", {"bundle.crt": ca}))
    assert command.main([*arguments, *trust], environment=environment) == 0
    assert capsys.readouterr().out == f"MutatingWebhookConfiguration {name}: created\n"
    client_config = cluster.api.get(MUTATING_WEBHOOKS.path(name=name))["webhooks"][0]["clientConfig"]
    assert client_config["caBundle"] == base64.b64encode(ca).decode()
    server = f"{prefix}gardener-resource-manager.{namespace}:443"
    assert client_config["url"] == f"https://{server}/webhooks/vpa-in-place-updates"
