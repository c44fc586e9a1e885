"""What the agent does with ManagedResources, as scenes of `kit.crash.sweep`."""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar

from devcluster.cluster import Cluster
from gardener import keys
from gardener.managed_resource.references import key_of_reference
from kit import objects
from kit.crash.sweep import AgentScene, comparable, crossing, scenes_of
from kit.managed_resources import LOOKED_AT, USER_AGENT, ManagedWorld, config_map, deployment, holds, role, service
from kube.errors import NotFound
from kube.objects import Object, annotations, condition, finalizers, is_deleting, labels, metadata
from kube.resources import CONFIG_MAPS, VOLUME_CLAIMS
from kube.runtime.client import Client

State = dict[str, Sequence[Object] | None]

_DOMAIN = "resources.gardener.cloud"
STATUS = f"patch managedresources/status.{_DOMAIN}"
RECORD = f"{STATUS} managedresources.{_DOMAIN}"
"""Finalizers, too."""
_ROLES = "roles.rbac.authorization.k8s.io"
SMALL = (config_map("c-1"), config_map("c-2"), service("s"), role("r"), deployment("d"))


def _scaled_by_others(version: str) -> Object:
    obj = deployment("d", version)
    obj["metadata"]["annotations"] = {keys.PRESERVE_REPLICAS: "true"}
    del obj["spec"]["replicas"]
    return obj


def _stateful_set(name: str) -> Object:
    return objects.stateful_set(name, replicas=1)


def _balanced() -> Object:
    obj = service("lb")
    obj["spec"]["type"] = "LoadBalancer"
    return obj


class ManagedScene(AgentScene):
    """From one state of some ManagedResources to the next."""

    spare = 4
    """Conditions in between: what is pending, what health is like on the way; and the inventory once more."""
    before: ClassVar[State] = {}
    after: ClassVar[State]
    finally_: ClassVar[State | None] = None
    """What is wanted when the next incarnation starts, if not the same."""
    keeps: ClassVar[Sequence[tuple[str, str]]] = ()
    """Kind and name of objects that must not be recreated."""
    spec: ClassVar[dict[str, Any]] = {}
    settings: ClassVar[dict[str, Any]] = {}

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.world = ManagedWorld(admin, self.mark)
        self.world.managed_by = self.mark
        self.world.spec = self.spec

    def controllers(self) -> dict[str, Any]:
        return {"managedResource": {"managedByLabelValue": self.mark, **self.settings}}

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.world.add_decoys()
        await self.world.want(self.before)

    async def change(self) -> None:
        await self.world.keep(*self.keeps)
        await self.world.want(self.after)

    async def change_again(self) -> None:
        if self.finally_ is not None:
            await self.world.want(self.finally_)

    async def problem(self) -> str:
        problems = await self.world.problems()
        for name in self.world.wanted:
            live = await self.find("ManagedResource", name) or {}
            for kind, good in (("ResourcesHealthy", "True"), ("ResourcesProgressing", "False")):
                if (condition(live, kind) or {}).get("status") != good:
                    problems.append(f"{kind} of {name}: {condition(live, kind)}")
        return "; ".join(problems)

    async def state(self) -> Any:
        found = {}
        for kind in LOOKED_AT:
            for obj in await self.list(kind):
                name = metadata(obj)["name"]
                if name != "kube-root-ca.crt":
                    notes = {name: text for name, text in annotations(obj).items() if "deployment" not in name}
                    named = comparable({"metadata": {"labels": labels(obj), "annotations": notes}}, self.mark)
                    found[f"{kind} {name}"] = named, finalizers(obj)
        records = {}
        for obj in await self.list("ManagedResource"):
            status = obj["status"]
            reported = sorted((each["type"], each["status"], each["reason"]) for each in status["conditions"])
            listed = [
                sorted(map(key_of_reference, status.get(name) or [])) for name in ("resources", "pendingResources")
            ]
            records[metadata(obj)["name"]] = finalizers(obj), reported, str(listed).replace(self.mark, "$MARK")
        return found, records


class Creation(ManagedScene):
    is_real = True
    after: ClassVar[State] = {"a": SMALL}
    crosses = crossing(RECORD, f"create configmaps services {_ROLES} deployments.apps")


class Change(ManagedScene):
    warm = True
    before: ClassVar[State] = {"a": SMALL}
    after: ClassVar[State] = {
        "a": (config_map("c-1", "2"), config_map("c-3"), service("s", "2"), role("r"), role("r-2")),
    }
    keeps = (("ConfigMap", "c-1"), ("Service", "s"), ("Role", "r"))
    crosses = crossing(
        STATUS, f"create configmaps {_ROLES}", "update configmaps services", "delete configmaps deployments.apps"
    )


class ChangeThatIsTakenBack(ManagedScene):
    """Half of it is done when its maker thinks better of it."""

    warm = True
    spare = 8
    """What was done is undone."""
    before: ClassVar[State] = {"a": SMALL}
    after: ClassVar[State] = {
        "a": (config_map("c-1", "2"), config_map("c-2", "2"), service("s", "2"), role("r", "2"), deployment("d")),
    }
    finally_ = before
    keeps = (("ConfigMap", "c-1"), ("ConfigMap", "c-2"), ("Service", "s"), ("Role", "r"))
    crosses = crossing(STATUS, f"update configmaps services {_ROLES}")


class Deletion(ManagedScene):
    is_real = True
    warm = True
    before: ClassVar[State] = {"a": SMALL, "b": [config_map("other")]}
    after: ClassVar[State] = {"a": None}
    crosses = crossing(RECORD, f"delete configmaps services {_ROLES} deployments.apps")


class Dependencies(ManagedScene):
    """What depends on others comes first, and waits."""

    is_real = True
    spare = 6
    """Who waits reports so."""
    after: ClassVar[State] = {
        "top": [config_map("top")],
        "middle": [config_map("middle")],
        "base": [config_map("base")],
    }
    crosses = crossing(RECORD, "create configmaps")

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.world.annotations = {"top": {keys.DEPENDS_ON: "middle"}, "middle": {keys.DEPENDS_ON: "base:healthy"}}


class DependenciesGo(Dependencies):
    """And so does what others depend on, when all are deleted."""

    warm = True
    before: ClassVar[State] = Dependencies.after
    after: ClassVar[State] = {"base": None, "middle": None, "top": None}
    crosses = crossing(RECORD, "delete configmaps")


class HandOver(ManagedScene):
    """The receiver queries first."""

    warm = True
    before: ClassVar[State] = {"a": (config_map("a"), config_map("x"), service("y")), "b": [config_map("b")]}
    after: ClassVar[State] = {
        "b": [config_map("b"), config_map("x", "2"), service("y")],
        "a": [config_map("a")],
    }
    keeps = (("ConfigMap", "x"), ("Service", "y"))
    crosses = crossing(STATUS, "update configmaps services")


class HandOverBackwards(HandOver):
    """The giver drops it first."""

    after: ClassVar[State] = {
        "a": [config_map("a")],
        "b": [config_map("b"), config_map("x", "2"), service("y")],
    }


class HandOverByDeletion(ManagedScene):
    warm = True
    before: ClassVar[State] = {"a": (config_map("a"), config_map("x"), deployment("y")), "b": [config_map("b")]}
    after: ClassVar[State] = {"b": [config_map("b"), config_map("x"), deployment("y")], "a": None}
    keeps = (("ConfigMap", "x"), ("Deployment", "y"))
    crosses = crossing(RECORD, "update configmaps deployments.apps", "delete configmaps")


class HandOverBetweenClasses(HandOver):
    """The giver's agent dies; that of the receiver, which has a class of its own, does not."""

    spare = 24
    """Who waits for the other agent tries again soon, and reports so each time."""
    giver_dies: ClassVar[bool] = True
    crosses = crossing(STATUS, "patch configmaps services")

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.world.classes = {"b": "other"}

    @contextlib.asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        other = Client(self.client.transport, user_agent=USER_AGENT)
        clients = (client, other) if self.giver_dies else (other, client)
        giver = self.configuration()
        taker = {**giver, "controllers": {**giver["controllers"], "resourceClass": "other"}}
        async with (
            self.agent_at_work(clients[0], giver) as giver_rests,
            self.agent_at_work(clients[1], taker) as taker_rests,
        ):
            yield lambda: giver_rests() and taker_rests()


class HandOverBetweenClassesBackwards(HandOverBetweenClasses):
    after = HandOverBackwards.after


class HandOverToAClassThatDies(HandOverBetweenClasses):
    giver_dies = False
    crosses = crossing(STATUS, "patch configmaps services", "update configmaps services")


class HandOverToAClassThatDiesBackwards(HandOverToAClassThatDies):
    after = HandOverBackwards.after


class Release(ManagedScene):
    warm = True
    before: ClassVar[State] = {"a": (config_map("a"), config_map("x"))}
    after: ClassVar[State] = {"a": (config_map("a", "2"), config_map("x", **{keys.MODE: keys.MODE_IGNORE}))}
    keeps = (("ConfigMap", "x"),)
    crosses = crossing(STATUS, "update configmaps", "patch configmaps")


class AlwaysUpdate(ManagedScene):
    """Everything is written once when it is first looked at, whether it differs or not."""

    warm = True
    spare = 9
    """All objects once more for each process."""
    settings: ClassVar[dict[str, Any]] = {"alwaysUpdate": True}
    before: ClassVar[State] = {"a": SMALL}
    after: ClassVar[State] = {"a": (*SMALL, config_map("c-3"))}
    crosses = crossing(STATUS, "create configmaps")


class History(ManagedScene):
    """The version before is pruned when the next one is kept; each is kept once, and no number is used twice."""

    warm = True
    settings: ClassVar[dict[str, Any]] = {"historyLimit": 1}
    before: ClassVar[State] = {"a": (config_map("a"),)}
    after: ClassVar[State] = {"a": (config_map("a", "2"),)}
    crosses = crossing(STATUS, "update configmaps", "create secrets", "delete secrets")

    async def problem(self) -> str:
        problem = await super().problem()
        number = 2 if holds(self.world.wanted["a"], list(self.after["a"] or ())) else 1
        applied = (await self.get("ManagedResource", "a"))["status"].get("secretsDataChecksum")
        kept = [annotations(each) for each in await self.list("Secret") if keys.HISTORY_OF in labels(each)]
        found = [(each[keys.REVISION], each[keys.REVISION_DIGEST]) for each in kept]
        return problem if found == [(str(number), applied)] else f"{problem}; the history is {found}"


class InjectedLabels(ManagedScene):
    spec: ClassVar[dict[str, Any]] = {"injectLabels": {"injected": "yes"}}
    after: ClassVar[State] = {"a": SMALL}
    crosses = Creation.crosses

    async def problem(self) -> str:
        problem = await super().problem()
        live = await self.find("Deployment", "d")
        if live is not None:
            template = live["spec"]["template"]["metadata"]["labels"]
            if labels(live).get("injected") != "yes" or template.get("injected") != "yes":
                problem += "; the labels are missing"
        return problem


class Adoption(ManagedScene):
    """The objects are there already, and what they have beside the manifests stays."""

    after: ClassVar[State] = {"a": SMALL}
    crosses = crossing(RECORD, "create services", "update configmaps deployments.apps")

    async def prepare(self) -> None:
        await super().prepare()
        for obj in (config_map("c-1", "0", mine="yes"), deployment("d", "0")):
            await self.create(obj)


class Preserved(ManagedScene):
    """Another client scales the Deployment, and it stays so under all writers."""

    warm = True
    before: ClassVar[State] = {"a": [_scaled_by_others("1")]}
    after: ClassVar[State] = {"a": [_scaled_by_others("2")]}
    keeps = (("Deployment", "d"),)
    crosses = crossing(STATUS, "update deployments.apps")
    _is_scaled = False

    async def change(self) -> None:
        await self.patch("Deployment", "d", {"spec": {"replicas": 0}})
        self._is_scaled = True
        await super().change()

    async def problem(self) -> str:
        problem = await super().problem()
        live = await self.find("Deployment", "d")
        if live is not None and self._is_scaled and live["spec"]["replicas"] != 0:
            problem += f"; there are {live['spec']['replicas']} replicas"
        return problem


def _immutable(version: str) -> Object:
    obj = config_map("x", version, **{keys.DELETE_ON_INVALID_UPDATE: "true"})
    return {**obj, "immutable": True}


class Recreation(ManagedScene):
    """What can't be changed is deleted and recreated."""

    warm = True
    spare = 6
    """It reports in between that it had to delete something."""
    before: ClassVar[State] = {"a": [config_map("a"), _immutable("1")]}
    after: ClassVar[State] = {"a": [config_map("a"), _immutable("2")]}
    crosses = crossing(STATUS, "delete configmaps", "create configmaps")


class VolumeClaims(ManagedScene):
    """A StatefulSet goes with its claims."""

    warm = True
    spec: ClassVar[dict[str, Any]] = {"deletePersistentVolumeClaims": True}
    spare = 6
    """Claims that are recreated meanwhile."""
    before: ClassVar[State] = {"a": [config_map("a"), _stateful_set("f")]}
    after: ClassVar[State] = {"a": [config_map("a")]}
    crosses = crossing(STATUS, "deletecollection persistentvolumeclaims", "delete statefulsets.apps")

    async def prepare(self) -> None:
        await super().prepare()
        await self.make_foreign(objects.obj(VOLUME_CLAIMS, "foreign", spec=objects.GIBIBYTE))

    async def problem(self) -> str:
        claims = await self.list(VOLUME_CLAIMS)
        kept = {metadata(claim)["name"] for claim in claims if not is_deleting(claim)}
        if len(self.world.wanted["a"]) > 1:  # there is no storage, so its pod never runs
            problem, wanted = "; ".join(await self.world.problems()), {"foreign", "data-f-0"}
        else:
            problem, wanted = await super().problem(), {"foreign"}
        return problem or ("" if kept == wanted else f"the claims are {kept}")


class FinalizedNamespace(AgentScene):
    """A Namespace that does not get empty is finalized after a while."""

    warm = True
    spare = ManagedScene.spare + 2
    """What is pending is reported more than once."""
    crosses = crossing(RECORD, "delete namespaces", "update namespaces/finalize")
    _is_going = False

    def controllers(self) -> dict[str, Any]:
        return {"managedResource": {"managedByLabelValue": self.mark}}

    @property
    def _inner(self) -> str:
        return f"{self.mark}-inner"

    async def prepare(self) -> None:
        await self.make_namespace()
        later = {keys.FINALIZE_DELETION_AFTER: "1s"}
        await self.create(objects.bundle("a", objects.obj("Namespace", self._inner, annotations=later)))
        await self.create(objects.managed_resource("a"))

    async def change(self) -> None:
        held = objects.obj(CONFIG_MAPS, "stuck", namespace=self._inner, finalizers=["example.com/hold"])
        await self.create(held)
        await self.delete("ManagedResource", "a")
        self._is_going = True

    async def problem(self) -> str:
        live = await self.find("ManagedResource", "a")
        if self._is_going:
            inner = await self.find("Namespace", self._inner)
            return "" if live is None and inner is None else "not all is gone"
        return "" if (condition(live or {}, "ResourcesHealthy") or {}).get("status") == "True" else "not applied"

    async def state(self) -> Any:
        return await self.snapshot("ManagedResource")

    async def clean_up(self) -> None:
        with contextlib.suppress(NotFound):
            freed = {"metadata": {"finalizers": None}}
            await self.patch("ConfigMap", "stuck", freed, namespace=self._inner)
        await self.remove("Namespace", self._inner)
        await super().clean_up()


class Health(ManagedScene):
    """Something that is not well gets well, and nothing else happens."""

    is_real = True
    warm = True
    spare = 2
    """Two conditions, which may change one after the other."""
    before: ClassVar[State] = {"a": [config_map("a"), _balanced()]}
    after: ClassVar[State] = {}
    crosses = crossing(STATUS)
    _is_well = False

    async def change(self) -> None:
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
        await self.patch("Service", "lb", status, subresource="status")
        self._is_well = True

    async def problem(self) -> str:
        if self._is_well:
            return await super().problem()
        reported = (await self.condition("a", "ResourcesHealthy")).get("reason")
        return (
            "" if reported == "ServiceUnhealthy" and not await self.world.problems() else f"it is reported {reported}"
        )


SCENES = scenes_of(__name__)
