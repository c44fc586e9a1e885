"""What the controllers of Projects see of kinds that no others need."""

from agent.controller_manager.api import BY_NAMESPACE
from gardener.garden.resources import BACKUP_ENTRIES
from kube.cache import View, without_managed_fields
from kube.client import Form
from kube.objects import Object, key


def _namespace(entry: Object) -> list[str]:
    return [key(entry).namespace]


BACKUP_ENTRIES_VIEW = View(
    BACKUP_ENTRIES, without_managed_fields, form=Form.METADATA, indexes=((BY_NAMESPACE, _namespace),)
)
