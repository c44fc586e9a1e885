"""What the agent's controllers do beside ManagedResources, as scenes of `crash_sweep`."""

import base64
import re
from typing import Any, ClassVar

import yaml
from crash_sweep import AgentScene, find, right, snapshot
from token_world import World as Tokens
from token_world import kubeconfig, token_requestor

from agent.network_policy import keys as policy_keys
from agent.network_policy.keys import NETWORK_POLICIES
from agent.references.keys import GARBAGE_COLLECTABLE, annotation_key
from agent.token_invalidator import keys as invalidator_keys
from agent.token_requestor import keys as token_keys
from devcluster.cluster import Cluster
from kube.client import Client, Selection
from kube.objects import Key, Object, annotations, labels, metadata
from kube.resources import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, SERVICES, Resource

_DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
_STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)
_JWT = re.compile(r"^ey[\w-]+\.[\w-]+\.[\w-]+$")


class Garbage(AgentScene):
    is_real = True
    crosses = frozenset({right("delete configmaps"), right("delete secrets")})

    def controllers(self) -> dict[str, Any]:
        return {"garbageCollector": {"enabled": True, "syncPeriod": "1h", "minimumObjectLifetime": "0s"}}

    async def prepare(self) -> None:
        await self.make_namespace()
        for name in ("a", "b", "c"):
            await self.admin.create(CONFIG_MAPS, self._collectable(name))
            await self.admin.create(SECRETS, self._collectable(name))
        await self.make_foreign(SECRETS, self._collectable("used"))
        await self.make_foreign(CONFIG_MAPS, {"metadata": {"name": "plain", "namespace": self.mark}})
        reference = {annotation_key("secret", "used"): "used"}
        meta = {"name": "p", "namespace": self.mark, "annotations": reference}
        spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}
        template = {"metadata": {"labels": {"app": "p"}, "annotations": reference}, "spec": spec}
        user = {"replicas": 0, "selector": {"matchLabels": {"app": "p"}}, "template": template}
        await self.admin.create(_DEPLOYMENTS, {"metadata": meta, "spec": user})

    def _collectable(self, name: str) -> Object:
        return {"metadata": {"name": name, "namespace": self.mark, "labels": {GARBAGE_COLLECTABLE: "true"}}}

    async def problem(self) -> str:
        left = (await self.state()).keys() - {"Secret $MARK/used", "ConfigMap $MARK/plain"}
        return f"still there: {left}" if left else ""

    async def state(self) -> Any:
        return await snapshot(self.admin, self.mark, [self.mark], CONFIG_MAPS, SECRETS)


class Token(AgentScene):
    """Somebody asks for a token."""

    is_real = True
    spare = 1
    """A token that nobody got is asked for once more."""
    crosses = frozenset(map(right, ("create serviceaccounts", "create serviceaccounts/token", "patch secrets")))
    data: ClassVar[dict[str, str] | None] = None
    lies_in: ClassVar[str] = "t"
    renewed: ClassVar[bool] = False

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.world = Tokens(admin, self.mark)
        self._before = ""

    def controllers(self) -> dict[str, Any]:
        return {"tokenRequestor": {"enabled": True}}

    async def prepare(self) -> None:
        await self.make_namespace()
        other = {token_keys.PURPOSE: "other"}
        await self.make_foreign(SECRETS, {"metadata": {"name": "other", "namespace": self.mark, "labels": other}})
        target = {"TARGET_NAME": self.lies_in, "TARGET_NAMESPACE": self.mark} if self.lies_in != "t" else {}
        await self.world.ask(data=self.data, **target)
        if self.renewed:
            async with token_requestor(self.admin, self.mark):
                await self.world.until(self._is_given, what="the first token")
            self._before = await self._token()
            labelled = '{"a": "b"}' if self.lies_in != "t" else None
            await self.world.annotate("t", RENEW_TIMESTAMP="2020-01-01T00:00:00Z", LABELS=labelled)

    async def change_again(self) -> None:
        """Whoever uses it has found a good token at any time; nobody takes the old one away before."""
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
        timestamp = annotations(await self.world.secret() or {}).get(token_keys.RENEW_TIMESTAMP, "2020")
        token = await self._token()
        return timestamp > "2021" and token not in {"", self._before} and await self.world.is_accepted(token)

    async def problem(self) -> str:
        return "" if await self._is_given() else "there is no token"

    async def state(self) -> Any:
        found = await snapshot(self.admin, self.mark, [self.mark], SECRETS, SERVICE_ACCOUNTS)
        for name, obj in found.items():
            obj["data"] = {key: self._without_token(text) for key, text in (obj.get("data") or {}).items()}
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
    """A token of which nothing was noted in the Secret that asks is requested once more, and stored."""
    lies_in = "out"
    crosses = frozenset({*Token.crosses, right("create secrets")})


class RenewedToken(Token):
    renewed = True
    crosses = frozenset({right("create serviceaccounts/token"), right("patch secrets")})


class RenewedTokenOfKubeconfig(RenewedToken):
    data: ClassVar[dict[str, str] | None] = {"kubeconfig": kubeconfig()}


class RenewedTokenInTarget(RenewedToken):
    spare = TokenInTarget.spare
    lies_in = "out"
    crosses = frozenset({*RenewedToken.crosses, right("update secrets"), right("update serviceaccounts")})


class InvalidatedToken(AgentScene):
    is_real = True
    crosses = frozenset({right("patch secrets")})
    sections: ClassVar[dict[str, Any]] = {"webhooks": {"tokenInvalidator": {"enabled": True}}}

    def controllers(self) -> dict[str, Any]:
        return {"tokenInvalidator": {"enabled": True}}

    async def prepare(self) -> None:
        await self.make_namespace()
        meta = {"name": "sa", "namespace": self.mark}
        await self.admin.create(SERVICE_ACCOUNTS, {"metadata": meta, "automountServiceAccountToken": False})
        await self.make_foreign(SECRETS, self._secret("plain", "Opaque"))
        world = Tokens(self.admin, self.mark)
        for name in ("a", "b"):
            await self.admin.create(SECRETS, self._secret(name, invalidator_keys.SECRET_TYPE))
            await world.until_token(name)

    def _secret(self, name: str, type_: str) -> Object:
        of = {invalidator_keys.SERVICE_ACCOUNT_NAME: "sa"}
        return {"metadata": {"name": name, "namespace": self.mark, "annotations": of}, "type": type_}

    async def problem(self) -> str:
        wanted = {invalidator_keys.PURPOSE: "token-invalidator", invalidator_keys.CONSIDER: "true"}
        lacking = [name for name, found in (await self.state()).items() if not wanted.items() <= found.items()]
        return "" if lacking == ["plain"] else f"labels are missing: {lacking}"

    async def state(self) -> Any:
        secrets = await self.admin.list(SECRETS, Selection(namespace=self.mark))
        return {metadata(secret)["name"]: labels(secret) for secret in secrets}


class Policies(AgentScene):
    """Ports, selector and peers of a Service change."""

    is_real = True
    warm = True
    crosses = frozenset(right(f"{verb} networkpolicies.networking.k8s.io") for verb in ("create", "patch", "delete"))
    _peer = ""

    @property
    def namespaces(self) -> tuple[str, ...]:
        return self.mark, f"{self.mark}-b"

    def controllers(self) -> dict[str, Any]:
        return {"networkPolicy": {"enabled": True}}

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.make_namespace(self.namespaces[1])
        meta = {"name": "foreign", "namespace": self.mark}
        await self.make_foreign(NETWORK_POLICIES, {"metadata": meta, "spec": {"podSelector": {}}})
        ports = [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "targetPort": 8081}]
        spec = {"selector": {"app": "db"}, "ports": ports}
        await self.admin.create(SERVICES, {"metadata": {"name": "db", "namespace": self.mark}, "spec": spec})
        self._wanted = self._pair("db-tcp-8080") | self._pair("db-tcp-8081")
        self._app = "db"

    def _pair(self, name: str) -> set[str]:
        return {f"$MARK/{way}-to-{name}" for way in ("ingress", "egress")}

    async def change(self) -> None:
        ports = [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "targetPort": 9090}]
        selectors = f'[{{"matchLabels": {{"{policy_keys.NAMESPACE_LABEL}": "{self.namespaces[1]}"}}}}]'
        body = {
            "metadata": {"annotations": {policy_keys.NAMESPACE_SELECTORS: selectors}},
            "spec": {"selector": {"app": "other"}, "ports": ports},
        }
        await self.admin.patch(SERVICES, "db", body, namespace=self.mark)
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
        return await snapshot(self.admin, self.mark, self.namespaces, NETWORK_POLICIES)

    async def clean_up(self) -> None:
        for name in self.namespaces:
            await self.admin.delete(_NAMESPACES, name)


_NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


class TouchedWorkloads(AgentScene):
    """The webhook is to look at workloads again. Without it the writes change nothing."""

    is_real = True
    spare = 2
    """Whoever starts can't tell what was looked at already."""
    crosses = frozenset({right("patch deployments.apps"), right("patch statefulsets.apps")})
    sections: ClassVar[dict[str, Any]] = {"webhooks": {"highAvailabilityConfig": {"enabled": True}}}

    async def prepare(self) -> None:
        await self.make_namespace(**{"high-availability-config.resources.gardener.cloud__consider": "true"})
        for kind in (_DEPLOYMENTS, _STATEFUL_SETS):
            await self.admin.create(kind, self._workload(kind.kind))

    def _workload(self, kind: str) -> Object:
        selector = {"matchLabels": {"app": kind.lower()}}
        spread = {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector,
        }
        pod = {"containers": [{"name": "c", "image": "i"}], "topologySpreadConstraints": [spread]}
        template = {"metadata": {"labels": selector["matchLabels"]}, "spec": pod}
        spec = {"replicas": 0, "selector": selector, "template": template}
        if kind == "StatefulSet":
            spec["serviceName"] = "s"
        return {"metadata": {"name": "w", "namespace": self.mark}, "spec": spec}

    async def problem(self) -> str:
        return ""

    async def state(self) -> Any:
        found = {}
        for kind in (_DEPLOYMENTS, _STATEFUL_SETS):
            live = await find(self.admin, kind, Key(self.mark, "w")) or {}
            found[kind.kind] = live["spec"]
        return found


SCENES: tuple[type[AgentScene], ...] = (
    Garbage,
    Token,
    TokenOfKubeconfig,
    TokenInTarget,
    RenewedToken,
    RenewedTokenOfKubeconfig,
    RenewedTokenInTarget,
    InvalidatedToken,
    Policies,
    TouchedWorkloads,
)
