"""Members of a Project in a garden who want to do alone what takes two, for longer than allowed, or to others' domains.

    python -m tests.attacks.members

Each attack is a few requests to the API server of a garden on loopback, of this program's own. The figure reports whether
the last of them was refused, or what has become of the Shoot. To attack the admission of another checkout, run a copy
of this file there.
"""

import sys
import time
from collections.abc import Callable

from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from gardener.api.garden import PROJECTS, SHOOTS
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kube.errors import ApiError, Forbidden, Invalid
from kube.objects import Object
from kube.resources import SECRETS

_CONFIRMED: Object = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
_EXPIRATION = "shoot.gardener.cloud/expiration-timestamp"
_MANAGER = "system:serviceaccount:garden:gardener-controller-manager"
_COLLECTOR_SECONDS = 20.0
"""In which the garbage collector would have deleted."""


class Members:
    """A Project with one Shoot, which two people have to delete, and whose lifetime a Quota limits to a day."""

    def __init__(self, garden: Garden) -> None:
        self.place = place = ShootPlace(garden)
        place.limit(days=1)
        self.change(
            {"spec": {"dualApprovalForDeletion": [{"resource": "shoots", "selector": {"matchLabels": {"a": "b"}}}]}}
        )
        place.shoot("s", metadata={"labels": {"a": "b"}})

    def by(self, user: str = "") -> Garden:
        """As an administrator with this name."""
        return self.place.garden.as_user(user, "system:masters") if user else self.place.garden

    def change(self, body: Object, user: str = "") -> None:
        self.by(user).patch(PROJECTS, self.place.name, body)

    def annotate(self, body: Object, user: str) -> None:
        self.by(user).patch(SHOOTS, "s", body, namespace=self.place.namespace)

    def delete(self, user: str) -> None:
        self.by(user).delete(SHOOTS, "s", namespace=self.place.namespace)

    def own_domain(self, name: str, domain: str) -> None:
        if self.place.find(SECRETS, "dns") is None:
            self.place.create(SECRETS, "dns", stringData={"key": "value"})
        provider = {"type": self.place.name, "secretName": "dns", "primary": True}
        self.place.shoot(name, dns={"domain": domain, "providers": [provider]})


def _lives_for_ever(members: Members, _: Members) -> None:
    ends = {"annotations": {_EXPIRATION: "9999-12-31T00:00:00Z"}}
    members.place.shoot("forever", metadata=ends, secretBindingName="limited")


def _by_the_collector(members: Members, _: Members) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "11111111-2222-3333-4444-555555555555"}
    members.annotate(_CONFIRMED, "ann")
    members.annotate({"metadata": {"ownerReferences": [owner]}}, "ann")
    end = time.monotonic() + _COLLECTOR_SECONDS
    while members.place.find(SHOOTS, "s") is not None:
        if time.monotonic() > end:
            raise Forbidden(403, message="the Shoot is still there")
        time.sleep(0.2)


def _after_a_controller(members: Members, _: Members) -> None:
    members.annotate(_CONFIRMED, _MANAGER)
    members.delete("ann")


def _by_a_service_account(members: Members, _: Members) -> None:
    members.annotate(_CONFIRMED, "ann")
    members.delete(f"system:serviceaccount:{members.place.namespace}:robot")


def _without_the_rule(members: Members, _: Members) -> None:
    members.annotate(_CONFIRMED, "ann")
    members.change({"spec": {"dualApprovalForDeletion": None}}, "ann")
    time.sleep(1.0)  # for the webhooks to hear of it
    members.delete("ann")


def _with_other_labels(members: Members, _: Members) -> None:
    members.annotate(_CONFIRMED, "ann")
    members.annotate({"metadata": {"labels": {"a": None}}}, "ann")
    members.delete("ann")


def _by_its_end(members: Members, _: Members) -> None:
    members.annotate({"metadata": {"annotations": {_EXPIRATION: "2020-01-01T00:00:00Z"}}}, "ann")


def _takes_com(members: Members, _: Members) -> None:
    members.own_domain("tld", "com")


def _takes_the_domain_of_another(members: Members, others: Members) -> None:
    """What would be refused is to the owner's harm: so the refusal of the attack is that the owner is not refused."""
    members.own_domain("squat", "owner.org")
    time.sleep(1.0)  # for the webhooks to hear of it
    try:
        others.own_domain("shop", "shop.owner.org")
    except Forbidden:
        return
    raise Forbidden(403, message="the owner has the domain")


_ATTACKS: dict[str, Callable[[Members, Members], None]] = {
    "a Shoot that lives until 9999, by a Quota of a day": _lives_for_ever,
    "one person deletes: by an owner that does not exist": _by_the_collector,
    "one person deletes: after a confirmation by a controller": _after_a_controller,
    "one person deletes: with a ServiceAccount": _by_a_service_account,
    "one person deletes: without the rule": _without_the_rule,
    "one person deletes: with other labels": _with_other_labels,
    "one person deletes: by bringing the end forward": _by_its_end,
    "the domain `com`": _takes_com,
    "others kept from `shop.owner.org` by a Shoot with `owner.org`": _takes_the_domain_of_another,
}


def main() -> int:
    with Cluster() as cluster:
        GardenBox(cluster).install()
        garden = Garden(cluster)
        print("| Attack | Outcome |\n|---|---|", flush=True)
        for name, attack in _ATTACKS.items():
            members, others = Members(garden), Members(garden)
            try:
                attack(members, others)
            except (Forbidden, Invalid):
                outcome = "refused"
            except ApiError as error:
                outcome = f"error: {error}"
            else:
                outcome = "done"
            print(f"| {name} | {outcome} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
