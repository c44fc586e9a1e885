"""OpenIDConnectPresets and ClusterOpenIDConnectPresets: OpenID Connect for new Shoots."""

from collections.abc import Iterator

from gardener.api.garden.presets import CLUSTER_OPENID_CONNECT_PRESET, OPENID_CONNECT_PRESET
from gardener.garden.certificates import bundle_errors
from kube.objects import mapping, text
from kube.paths import mapping_at
from kube.validation import label_selector_errors, required
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write


def selector_errors(write: Write) -> Iterator[Finding]:
    for field in ("shootSelector", "projectSelector"):
        yield from label_selector_errors(f"spec.{field}", mapping(write.spec.get(field)))


def server_errors(write: Write) -> Iterator[Finding]:
    server = mapping(write.spec.get("server"))
    yield from bundle_errors("spec.server.caBundle", text(server.get("caBundle")))
    for path, named in (
        ("spec.server.requiredClaims", mapping(server.get("requiredClaims"))),
        ("spec.client.extraConfig", mapping_at(write.spec, "client", "extraConfig")),
    ):
        if "" in named:
            yield required(path, "names cannot be empty")


CHECKS = (selector_errors, server_errors)
PRESET = Kind(definition=OPENID_CONNECT_PRESET, checks=CHECKS)
CLUSTER_PRESET = Kind(definition=CLUSTER_OPENID_CONNECT_PRESET, checks=CHECKS)
