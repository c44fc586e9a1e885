"""A place with two Seeds, and questions what their gardenlets may do.

Questions are SubjectAccessReviews, which the API server answers by its authorizers as if the gardenlet had come itself.
"""

import contextlib
from dataclasses import dataclass

from gardener.api import garden as resources
from gardener.keys import SEED_USER_PREFIX, SEEDS_GROUP
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kube import resources as kubernetes
from kube.errors import AlreadyExists
from kube.objects import Object, uid
from kube.resources import SUBJECT_ACCESS_REVIEWS, Resource


@dataclass
class TwoSeeds:
    """A place with two Seeds; `own` has the Shoot `s`, `foreign` the Shoot `f`."""

    place: ShootPlace
    own: str
    foreign: str

    @property
    def garden(self) -> Garden:
        return self.place.garden

    def may(
        self,
        seed: str,
        verb: str,
        resource: Resource,
        name: str = "",
        namespace: str | None = None,
        *,
        subresource: str = "",
        label: str = "",
        field: tuple[str, str] | None = None,
    ) -> bool:
        where = self.place.namespace if namespace is None else namespace
        attributes: Object = {"verb": verb, "group": resource.group, "version": resource.version, "name": name}
        attributes |= {"resource": resource.plural, "subresource": subresource}
        attributes |= {"namespace": where} if resource.namespaced else {}
        if label:
            requirement = {"key": label, "operator": "In", "values": ["true"]}
            attributes["labelSelector"] = {"requirements": [requirement]}
        if field:
            requirement = {"key": field[0], "operator": "In", "values": [field[1]]}
            attributes["fieldSelector"] = {"requirements": [requirement]}
        spec = {"user": f"{SEED_USER_PREFIX}{seed}", "groups": [SEEDS_GROUP, "system:authenticated"]}
        review = {**SUBJECT_ACCESS_REVIEWS.type_meta, "spec": {**spec, "resourceAttributes": attributes}}
        answer = self.garden.cluster.api.create(SUBJECT_ACCESS_REVIEWS.path(), review)
        return bool(answer["status"]["allowed"])


def two_seeds(garden: Garden) -> TwoSeeds:
    """The Shoot `s` uses the Secret `named`, `unused` is of no use."""
    place = ShootPlace(garden)
    two = TwoSeeds(place, place.seed("-a"), place.seed("-b"))
    with contextlib.suppress(AlreadyExists):
        garden.create(kubernetes.SECRETS, "backup", namespace="garden", stringData={"key": "value"})
    place.create(kubernetes.SECRETS, "named", stringData={"key": "value"})
    place.create(kubernetes.SECRETS, "unused", stringData={"key": "value"})
    reference = {"name": "r", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "named"}}
    place.shoot("s", seedName=two.own, resources=[reference])
    place.shoot("f", seedName=two.foreign)
    status = {"technicalID": f"shoot--{place.name}--s", "uid": uid(place.get(resources.SHOOTS, "s"))}
    place.patch(resources.SHOOTS, "s", {"status": status}, status=True)
    return two
