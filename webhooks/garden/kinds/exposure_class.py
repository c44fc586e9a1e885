"""ExposureClasses: access to API servers of Shoots."""

from collections.abc import Iterator

from gardener.api.garden.exposure_class import EXPOSURE_CLASS as DEFINITION
from kube.objects import mapping, mappings
from kube.validation import label_selector_errors
from webhooks.garden.common import tolerations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write


def scheduling_errors(write: Write) -> Iterator[Finding]:
    scheduling = mapping(write.new.get("scheduling"))
    yield from label_selector_errors("scheduling.seedSelector", mapping(scheduling.get("seedSelector")))
    yield from tolerations.list_errors("scheduling.tolerations", mappings(scheduling.get("tolerations")))


EXPOSURE_CLASS = Kind(definition=DEFINITION, checks=(scheduling_errors,))
