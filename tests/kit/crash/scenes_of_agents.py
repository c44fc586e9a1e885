"""What the agent's controllers do beside ManagedResources, as scenes of `kit.crash.sweep`."""

import base64
import re
from typing import Any, ClassVar

import yaml

from agent.resource_manager.token_invalidator.rules import SECRET_TYPE, SERVICE_ACCOUNT_NAME
from agent.shared.network_policy.rules.policies import NAMESPACE_LABEL
from devcluster.cluster import Cluster
from gardener import keys
from gardener.keys import GARBAGE_COLLECTABLE
from gardener.references import annotation_key
from kit.crash.sweep import AgentScene, crossing, scenes_of
from kit.eventually import soon
from kit.objects import deployment, obj, service, workload
from kit.tokens import TokenWorld, kubeconfig, token_requestor
from kube.objects import annotations, labels, metadata
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, NETWORK_POLICIES, SECRETS, STATEFUL_SETS
from kube.runtime.client import Client

_JWT = re.compile(r"^ey[\w-]+\.[\w-]+\.[\w-]+$")


class Garbage(AgentScene):
    is_real = True
    crosses = crossing("delete configmaps secrets")

    def controllers(self) -> dict[str, Any]:
        return {"garbageCollector": {"enabled": True, "syncPeriod": "1h", "minimumObjectLifetime": "0s"}}

    async def prepare(self) -> None:
        await self.make_namespace()
        collectable: dict[str, Any] = {"labels": {GARBAGE_COLLECTABLE: "true"}}
        for name in ("a", "b", "c"):
            await self.create(obj(CONFIG_MAPS, name, **collectable))
            await self.create(obj(SECRETS, name, **collectable))
        await self.make_foreign(obj(SECRETS, "used", **collectable))
        await self.make_foreign(obj(CONFIG_MAPS, "plain"))
        await self.create(deployment("p", annotations={annotation_key("secret", "used"): "used"}))

    async def problem(self) -> str:
        left = (await self.state()).keys() - {"Secret $MARK/used", "ConfigMap $MARK/plain"}
        return f"still there: {left}" if left else ""

    async def state(self) -> Any:
        return await self.snapshot("ConfigMap", "Secret")


class Token(AgentScene):
    """A user requests a token."""

    is_real = True
    spare = 1
    """A token that was lost is requested once more."""
    crosses = crossing("create serviceaccounts serviceaccounts/token", "patch secrets")
    data: ClassVar[dict[str, str] | None] = None
    lies_in: ClassVar[str] = "t"
    renewed: ClassVar[bool] = False

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.world = TokenWorld(admin, self.mark)
        self._before = ""

    def controllers(self) -> dict[str, Any]:
        return {"tokenRequestor": {"enabled": True}}

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.make_foreign(obj(SECRETS, "other", labels={keys.PURPOSE: "other"}))
        target = (
            {"TARGET_SECRET_NAME": self.lies_in, "TARGET_SECRET_NAMESPACE": self.mark} if self.lies_in != "t" else {}
        )
        await self.world.ask(data=self.data, **target)
        if self.renewed:
            async with token_requestor(self.client, self.mark):
                await soon(self._is_given, what="the first token")
            self._before = await self._token()
            labelled = '{"a": "b"}' if self.lies_in != "t" else None
            await self.world.annotate(
                "t", TOKEN_RENEW_TIMESTAMP="2020-01-01T00:00:00Z", SERVICE_ACCOUNT_LABELS=labelled
            )

    async def change_again(self) -> None:
        """Its users find a good token at any time; the old one is not taken away before."""
        if self._before:
            assert await self.world.is_accepted(self._before)
            assert await self.world.is_accepted(await self._token())

    async def _token(self) -> str:
        data = await self.world.data(self.lies_in)
        if self.data is not None:
            text = data.get("kubeconfig", "")
            return str(yaml.safe_load(text)["users"][0]["user"].get("token", "")) if text else ""
        return data.get("token", "")

    async def _is_given(self) -> bool:
        timestamp = annotations(await self.world.secret() or {}).get(keys.TOKEN_RENEW_TIMESTAMP, "2020")
        token = await self._token()
        return timestamp > "2021" and token not in {"", self._before} and await self.world.is_accepted(token)

    async def problem(self) -> str:
        return "" if await self._is_given() else "there is no token"

    async def state(self) -> Any:
        found = await self.snapshot("Secret", "ServiceAccount")
        for name, each in found.items():
            each["data"] = {key: self._without_token(text) for key, text in (each.get("data") or {}).items()}
            if name.startswith("Secret"):
                assert name in {"Secret $MARK/t", "Secret $MARK/out", "Secret $MARK/other"}
        return found

    def _without_token(self, encoded: str) -> Any:
        text = base64.b64decode(encoded).decode()
        if not text.startswith("{") and "users:" not in text:
            return _JWT.sub("<token>", text)
        document = yaml.safe_load(text)
        for user in document["users"]:
            user["user"] = {key: _JWT.sub("<token>", value) for key, value in user["user"].items()}
        return document


class TokenOfKubeconfig(Token):
    data: ClassVar[dict[str, str] | None] = {"kubeconfig": kubeconfig()}


class TokenInTarget(Token):
    spare = 2
    """A token of which nothing was noted in the Secret that requests it is requested once more, and stored."""
    lies_in = "out"
    crosses = Token.crosses | crossing("create secrets")


class RenewedToken(Token):
    renewed = True
    crosses = crossing("create serviceaccounts/token", "patch secrets")


class RenewedTokenOfKubeconfig(RenewedToken):
    data: ClassVar[dict[str, str] | None] = {"kubeconfig": kubeconfig()}


class RenewedTokenInTarget(RenewedToken):
    spare = TokenInTarget.spare
    lies_in = "out"
    crosses = RenewedToken.crosses | crossing("update secrets serviceaccounts")


class InvalidatedToken(AgentScene):
    is_real = True
    crosses = crossing("patch secrets")
    sections: ClassVar[dict[str, Any]] = {"webhooks": {"tokenInvalidator": {"enabled": True}}}

    def controllers(self) -> dict[str, Any]:
        return {"tokenInvalidator": {"enabled": True}}

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.create(obj("ServiceAccount", "sa", automountServiceAccountToken=False))
        of_account: dict[str, Any] = {"annotations": {SERVICE_ACCOUNT_NAME: "sa"}}
        await self.make_foreign(obj(SECRETS, "plain", type="Opaque", **of_account))
        world = TokenWorld(self.client, self.mark)
        for name in ("a", "b"):
            await self.create(obj(SECRETS, name, type=SECRET_TYPE, **of_account))
            await world.until_token(name)

    async def problem(self) -> str:
        wanted = {keys.PURPOSE: "token-invalidator", keys.TOKEN_INVALIDATOR_CONSIDER: "true"}
        lacking = [name for name, found in (await self.state()).items() if not wanted.items() <= found.items()]
        return "" if lacking == ["plain"] else f"labels are missing: {lacking}"

    async def state(self) -> Any:
        return {metadata(secret)["name"]: labels(secret) for secret in await self.list("Secret")}


class Policies(AgentScene):
    """Ports, selector and peers of a Service change."""

    is_real = True
    warm = True
    crosses = crossing(*(f"{verb} networkpolicies.networking.k8s.io" for verb in ("create", "patch", "delete")))
    _peer = ""

    @property
    def namespaces(self) -> tuple[str, ...]:
        return self.mark, f"{self.mark}-b"

    def controllers(self) -> dict[str, Any]:
        return {"networkPolicy": {"enabled": True}}

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.make_namespace(self.namespaces[1])
        await self.make_foreign(obj(NETWORK_POLICIES, "foreign", spec={"podSelector": {}}))
        ports = [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "targetPort": 8081}]
        await self.create(service("db", ports=ports, selector={"app": "db"}))
        self._wanted = self._pair("db-tcp-8080") | self._pair("db-tcp-8081")
        self._app = "db"

    def _pair(self, name: str) -> set[str]:
        return {f"$MARK/{way}-to-{name}" for way in ("ingress", "egress")}

    async def change(self) -> None:
        ports = [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "targetPort": 9090}]
        selectors = f'[{{"matchLabels": {{"{NAMESPACE_LABEL}": "{self.namespaces[1]}"}}}}]'
        body = {
            "metadata": {"annotations": {keys.NAMESPACE_SELECTORS: selectors}},
            "spec": {"selector": {"app": "other"}, "ports": ports},
        }
        await self.patch("Service", "db", body)
        self._wanted = self._pair("db-tcp-8080") | self._pair("db-tcp-9090")
        for port in (8080, 9090):
            self._wanted |= {
                f"$MARK/ingress-to-db-tcp-{port}-from-$MARK-b",
                f"$MARK-b/egress-to-$MARK-db-tcp-{port}",
            }
        self._app = "other"

    async def problem(self) -> str:
        found = await self.state()
        names = {name.removeprefix("NetworkPolicy ") for name in found} - {"$MARK/foreign"}
        if names != self._wanted:
            return f"missing {self._wanted - names}, too many {names - self._wanted}"
        selector = found["NetworkPolicy $MARK/ingress-to-db-tcp-8080"]["spec"]["podSelector"]
        return "" if selector == {"matchLabels": {"app": self._app}} else f"the selector is {selector}"

    async def state(self) -> Any:
        return await self.snapshot("NetworkPolicy", namespaces=self.namespaces)


class TouchedWorkloads(AgentScene):
    """The webhook is to look at workloads again. Without it the writes change nothing."""

    is_real = True
    spare = 2
    """A process that starts does not know what was looked at already."""
    crosses = crossing("patch deployments.apps statefulsets.apps")
    sections: ClassVar[dict[str, Any]] = {"webhooks": {"highAvailabilityConfig": {"enabled": True}}}

    async def prepare(self) -> None:
        await self.make_namespace(**{"high-availability-config.resources.gardener.cloud__consider": "true"})
        spread = {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "w"}},
        }
        for resource in (DEPLOYMENTS, STATEFUL_SETS):
            await self.create(workload(resource, "w", pod={"topologySpreadConstraints": [spread]}, replicas=0))

    async def problem(self) -> str:
        return ""

    async def state(self) -> Any:
        return [(await self.get(resource, "w"))["spec"] for resource in (DEPLOYMENTS, STATEFUL_SETS)]


SCENES = scenes_of(__name__)
