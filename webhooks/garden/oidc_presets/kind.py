from collections.abc import Iterator

from gardener.garden.kinds.presets import CLUSTER_OPENID_CONNECT_PRESET, OPENID_CONNECT_PRESET
from kube.objects import mapping
from kube.validation import label_selector_errors
from webhooks.garden.findings import Finding
from webhooks.garden.kind import Kind
from webhooks.garden.write import Write


def selector_errors(write: Write) -> Iterator[Finding]:
    for field in ("shootSelector", "projectSelector"):
        yield from label_selector_errors(f"spec.{field}", mapping(write.spec.get(field)))


PRESET = Kind(definition=OPENID_CONNECT_PRESET, checks=(selector_errors,))
CLUSTER_PRESET = Kind(definition=CLUSTER_OPENID_CONNECT_PRESET, checks=(selector_errors,))
