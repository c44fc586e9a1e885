"""What a Seed gets that its author has not written."""

from kube.paths import at
from webhooks.garden.common.extensions import DNS_RECORD, PROVIDER, set_extension_labels
from webhooks.garden.common.write import Write
from webhooks.rules.shapes import child


def reserve_capacity(write: Write) -> None:
    reservation = child(child(write.own_spec(), "settings"), "excessCapacityReservation")
    if reservation.get("enabled") is not False and not reservation.get("configs"):
        reservation["configs"] = [{"resources": {"cpu": "2", "memory": "6Gi"}}]


def label_extensions(write: Write) -> None:
    providers = (at(write.spec, "provider", "type"), at(write.spec, "backup", "provider"))
    wanted = {PROVIDER + each for each in providers if each}
    if dns := at(write.spec, "dns", "provider", "type"):
        wanted.add(DNS_RECORD + dns)
    set_extension_labels(write.new, wanted)
