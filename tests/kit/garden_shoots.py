"""Projects in which Shoots can be made, and Seeds to put them on.

    place = ShootPlace(garden)
    place.shoot("s", seedName=place.seed())
    place.patch(SHOOTS, "s", {"status": {...}}, status=True)

All that they refer to has the name of the place, types of extensions included, so that tests do not meet.
"""

import contextlib
import uuid
from functools import partial
from typing import Any

from gardener.api.garden import (
    CLOUD_PROFILES,
    CONTROLLER_REGISTRATIONS,
    PROJECTS,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
)
from kit.eventually import eventually
from kit.garden import CONFIRMED, Garden
from kit.garden_objects import garden_object
from kube.errors import AlreadyExists, Forbidden, NotFound
from kube.objects import Key, Object, finalizers, metadata
from kube.resources import SECRETS, Resource

_EXTENSIONS = (
    *("BackupBucket", "BackupEntry", "Bastion", "ControlPlane", "DNSRecord", "Infrastructure", "Network"),
    *("OperatingSystemConfig", "Worker"),
)


class ShootPlace:
    """Args: is_garden: the place is the Project `garden`, which all tests share; only its Shoots run Seeds."""

    def __init__(self, garden: Garden, *, is_garden: bool = False) -> None:
        self.garden = garden
        self.name = f"p{uuid.uuid4().hex[:6]}"
        """Of all that is made here, and of what is made beside."""
        self.namespace = "garden" if is_garden else f"garden-{self.name}"
        self._made: list[tuple[Resource, str]] = []
        if is_garden:
            with contextlib.suppress(AlreadyExists):
                garden.create(PROJECTS, "garden", spec={"namespace": "garden"})
        else:
            garden.place(self.name)
            self._made.append((PROJECTS, self.name))
        provided = [{"kind": kind, "type": self.name} for kind in _EXTENSIONS]
        self.create(CONTROLLER_REGISTRATIONS, self.name, spec={"resources": provided})
        profile = garden_object(CLOUD_PROFILES)["spec"]
        profile |= {"type": self.name, "machineImages": [{"name": self.name, "versions": [{"version": "1.0.0"}]}]}
        self.create(CLOUD_PROFILES, self.name, spec=profile)
        self.create(SECRETS, self.name, stringData={"key": "value"})
        secret = {"name": self.name, "namespace": self.namespace}
        self.create(SECRET_BINDINGS, self.name, provider={"type": self.name}, secretRef=secret)

    def limit(self, *, days: int) -> str:
        """A new SecretBinding whose Quota limits the lifetime of Shoots; its name."""
        scope = {"apiVersion": "v1", "kind": "Secret"}
        self.create(QUOTAS, "q", spec={"scope": scope, "clusterLifetimeDays": days, "metrics": {}})
        secret = {"name": self.name, "namespace": self.namespace}
        quotas = [{"name": "q", "namespace": self.namespace}]
        self.create(SECRET_BINDINGS, "limited", provider={"type": self.name}, secretRef=secret, quotas=quotas)
        return "limited"

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    def seed(self, suffix: str = "", *, has_backup: bool = True) -> str:
        """A new Seed; its name."""
        name, spec = self.name + suffix, garden_object(SEEDS)["spec"]
        spec["provider"]["type"] = spec["dns"]["provider"]["type"] = self.name
        spec["ingress"]["domain"] = f"ingress.{name}.example.com"
        if has_backup:
            spec["backup"] = {"provider": self.name, "secretRef": {"name": "backup", "namespace": "garden"}}
        del spec["taints"]
        self.create(SEEDS, name, spec=spec)
        return name

    def shoot(self, name: str = "s", *, metadata: Object | None = None, **spec: Any) -> Object:
        whole = garden_object(SHOOTS)["spec"] | {"secretBindingName": self.name}
        whole["cloudProfile"]["name"] = whole["networking"]["type"] = whole["provider"]["type"] = self.name
        whole["networking"] |= {"pods": "100.64.0.0/11", "services": "100.104.0.0/13"}
        whole["dns"] = {"providers": [{"type": "unmanaged", "primary": True}]}
        del whole["provider"]["workers"][0]["machine"]["image"]
        return self.create(SHOOTS, name, metadata=metadata or {}, spec=whole | spec)

    def create(self, resource: Resource, name: str, **fields: Any) -> Object:
        created = self.garden.create(resource, name, namespace=self._namespace(resource), **fields)
        self._made.append((resource, name))
        return created

    def remove(self) -> None:
        """All that was made here, whatever holds it, so that no test sees it that looks at the whole garden."""
        for resource, name in reversed(self._made):
            # Admission may not know yet that its last user has gone.
            eventually(partial(self.remove_one, resource, name), f"{name} to go", passing=(Forbidden,))

    def remove_one(self, resource: Resource, name: str) -> bool:
        """Whatever holds it."""
        with contextlib.suppress(NotFound):
            if finalizers(self.delete(resource, name)):
                self.patch(resource, name, {"metadata": {"finalizers": None}})
        return True

    def get(self, resource: Resource, name: str) -> Object:
        return self.garden.get(resource, name, namespace=self._namespace(resource))

    def find(self, resource: Resource, name: str) -> Object | None:
        try:
            return self.get(resource, name)
        except NotFound:
            return None

    def meta(self, resource: Resource, name: str) -> Object:
        return metadata(self.get(resource, name))

    def patch(self, resource: Resource, name: str, body: Object, *, status: bool = False) -> Object:
        return self.garden.patch(resource, name, body, namespace=self._namespace(resource), status=status)

    def delete(self, resource: Resource, name: str) -> Object:
        """With a confirmation for what needs one. The object, if something holds it."""
        if resource in {SHOOTS, PROJECTS}:
            self.patch(resource, name, CONFIRMED)
        return self.garden.delete(resource, name, namespace=self._namespace(resource))

    def _namespace(self, resource: Resource) -> str:
        return self.namespace if resource.namespaced else ""
