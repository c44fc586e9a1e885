"""What programs do without control loops, as scenes of `kit.crash.sweep`: Events, the Lease, certificates."""

import asyncio
import base64
import datetime
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from config.resource_manager import decode
from devcluster.cluster import Cluster
from kit.crash.sweep import Scene, crossing, scenes_of
from kit.objects import obj
from kit.processes.agent import AgentProcess, configuration
from kube.objects import Object, annotations
from kube.resources import API_SERVICES, CONFIG_MAPS, LEASES, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from kube.runtime.client import Client
from kube.runtime.election import ElectionSettings, LeaderElector, new_identity
from kube.runtime.events import EventRecorder
from kube.x509 import is_signed_by, load_certificates, load_pair
from webhooks.certificates.keeper import PUBLISHED_AT, CertificateOptions, Keeper
from webhooks.certificates.rules import SETTLED
from webhooks.configurations.install import install
from webhooks.configurations.objects import CaBundle, Service, name_of
from webhooks.configurations.registrations import configurations
from webhooks.rules.registration import Instance, Mode

_CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_ADMISSION = "admissionregistration.k8s.io"
_LEASE = "gardener-resource-manager"
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


class Command(Scene):
    """A program that comes to its end."""

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        running = asyncio.create_task(self.command(client))
        try:
            yield running.done
            await running
        finally:
            running.cancel()
            await asyncio.wait([running])

    def command(self, client: Client) -> Coroutine[Any, Any, None]:
        raise NotImplementedError


class RecordedEvents(Command):
    """The same Event again and again."""

    crosses = crossing("create events", "patch events")

    async def prepare(self) -> None:
        await self.make_namespace()
        self._about = await self.create(obj(CONFIG_MAPS, "c"))

    async def command(self, client: Client) -> None:
        recorder = EventRecorder(client, component="test")
        writing = asyncio.create_task(recorder.run())
        try:
            for _ in range(3):
                recorder.event(self._about, "Warning", "Noted", "something")
                await recorder.drain(60)
        finally:
            writing.cancel()

    async def problem(self) -> str:
        counts = [event["count"] for event in await self.events()]
        return "" if 3 in counts else f"counts are {counts}"

    async def state(self) -> Any:
        """It may be there twice: who starts again knows of none."""
        return {(event["type"], event["reason"], event["message"]) for event in await self.events()}


class Leadership(Scene):
    """A lease is taken and held."""

    is_real = True
    is_renewed = True
    crosses = crossing("create leases.coordination.k8s.io", "update leases.coordination.k8s.io")

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self._identity = ""
        self._seen: set[str] = set()

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.make_foreign(obj(LEASES, "other"))

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        self._identity, self._seen = new_identity(), set()
        settings = ElectionSettings(
            namespace=self.mark, name=_LEASE, lease_duration=8, renew_deadline=6, retry_period=0.2
        )
        elector = LeaderElector(client, settings, identity=self._identity)
        running = asyncio.create_task(elector.run(asyncio.Event().wait))
        try:
            yield lambda: elector.tenure.remaining > 0
        finally:
            running.cancel()
            await asyncio.wait([running])

    def process(self, kubeconfig: Path) -> AgentProcess:
        # It is killed with the lease in its hands.
        times = {"leaseDuration": "8s", "renewDeadline": "6s"}
        return AgentProcess(configuration(self.mark, leaderElection=times), kubeconfig=kubeconfig)

    async def problem(self) -> str:
        spec = (await self.find("Lease", _LEASE) or {}).get("spec") or {}
        if spec.get("holderIdentity") != self._identity:
            return f"it is held by {spec.get('holderIdentity')}"
        self._seen.add(spec["renewTime"])
        return "" if len(self._seen) > 2 else "it is not renewed"

    async def state(self) -> Any:
        return await self.names("Lease")


class Certificates(Command):
    """The first ones."""

    is_real = True
    crosses = crossing(
        "create secrets", "patch secrets", *(f"update {each.plural}.{_ADMISSION}" for each in _CONFIGURATIONS)
    )
    times: ClassVar[tuple[datetime.datetime, ...]] = (START,)

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.instance = Instance(mode=Mode.TARGET, prefix=f"{self.mark}-")
        self.name = name_of(self.instance)
        app = self.instance.app
        self.wanted = CertificateOptions(
            instance=self.instance, namespace=self.mark, secret=f"{app}-server", ca_secret=f"{app}-ca", names=("grm",)
        )

    async def prepare(self) -> None:
        await self.make_namespace()
        await self.make_foreign(obj(SECRETS, "other"))
        for kind in _CONFIGURATIONS:
            await self.create(self._configuration(self.name, self.instance.app), kind)
            await self.make_foreign(self._configuration(f"{self.mark}-other", "other"), kind)

    def _configuration(self, name: str, app: str) -> Object:
        """For objects without an owner."""
        webhook = {
            "name": "nothing.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [
                {"operations": ["CREATE"], "apiGroups": ["example.invalid"], "apiVersions": ["v1"], "resources": ["x"]}
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {"metadata": {"name": name, "labels": {"app": app}}, "webhooks": [webhook]}

    async def command(self, client: Client) -> None:
        for now in self.times:
            keeper = Keeper(self.wanted, source=client, target=client, clock=lambda now=now: now)  # type: ignore[misc]
            await keeper.run()

    def process(self, kubeconfig: Path) -> AgentProcess:
        config = kubeconfig.parent / "config.yaml"
        config.write_text(json.dumps(configuration(self.mark)))
        return _CertificatesProcess(
            None,
            kubeconfig=kubeconfig,
            arguments=(
                *("certificates", "--once", f"--config={config}", "--mode=target"),
                *(f"--prefix={self.instance.prefix}", f"--namespace={self.mark}"),
            ),
            bare=True,
        )

    async def problem(self) -> str:
        return "" if await self.list("Secret") else "there is nothing"

    async def state(self) -> Any:
        ca_secret = await self.get("Secret", self.wanted.ca_secret)
        ca = _decoded(ca_secret)
        bundles = await self._received()
        return {
            "reported": [bundle == ca["bundle.crt"] for bundle in bundles],
            "bundle": len(load_certificates(ca["bundle.crt"])),
            "noted": PUBLISHED_AT in annotations(ca_secret),
            "signed": await self._is_signed_by(ca["ca.crt"]),
            "secrets": len(await self.list("Secret")),
        }

    async def _received(self) -> list[bytes]:
        found = []
        for kind in _CONFIGURATIONS:
            live = await self.get(kind, self.name)
            found.append(base64.b64decode(live["webhooks"][0]["clientConfig"].get("caBundle") or ""))
        return found

    async def _is_signed_by(self, bundle: bytes) -> bool:
        serving = _decoded(await self.get("Secret", self.wanted.secret))
        pair = load_pair(serving["tls.crt"], serving["tls.key"])
        return pair is not None and any(is_signed_by(pair.certificate, ca) for ca in load_certificates(bundle))

    async def clean_up(self) -> None:
        for kind in _CONFIGURATIONS:
            await self.remove(kind, self.name)
            await self.remove(kind, f"{self.mark}-other")
        await super().clean_up()


class RotatedCertificates(Certificates):
    """There is no moment at which an API server does not trust the server."""

    crosses = Certificates.crosses - crossing("create secrets")
    times = (START + datetime.timedelta(days=244), START + datetime.timedelta(days=244) + SETTLED)

    async def prepare(self) -> None:
        await super().prepare()
        await Keeper(self.wanted, source=self.client, target=self.client, clock=lambda: START).run()

    async def change_again(self) -> None:
        for bundle in await self._received():
            assert await self._is_signed_by(bundle)


class CertificatesOfAnApi(Certificates):
    """Beside the webhook configurations, an APIService has to know the CA."""

    is_real = False
    crosses = crossing(f"update {API_SERVICES.plural}.{API_SERVICES.group}")

    async def prepare(self) -> None:
        await super().prepare()
        group = f"{self.mark}.example.com"
        self.wanted = replace(self.wanted, api_service=f"v1.{group}")
        spec = {"group": group, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        service = {"namespace": self.mark, "name": "grm", "port": 443}
        meta = {"name": self.wanted.api_service, "labels": {"app": self.instance.app}}
        await self.create({"metadata": meta, "spec": {**spec, "service": service}}, API_SERVICES)

    async def _received(self) -> list[bytes]:
        live = await self.get(API_SERVICES, self.wanted.api_service)
        return [*await super()._received(), base64.b64decode(live["spec"].get("caBundle") or "")]

    async def clean_up(self) -> None:
        await self.remove(API_SERVICES, self.wanted.api_service)
        await super().clean_up()


class _CertificatesProcess(AgentProcess):
    program = "webhooks"


def _decoded(secret: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


class InstalledConfigurations(Certificates):
    """Of those that are there one changes, and the other is not wanted any more."""

    crosses = crossing(
        f"patch {MUTATING_WEBHOOKS.plural}.{_ADMISSION}", f"delete {VALIDATING_WEBHOOKS.plural}.{_ADMISSION}"
    )

    async def command(self, client: Client) -> None:
        webhooks = decode(json.dumps({"webhooks": {"vpaInPlaceUpdates": {"enabled": True}}})).config.webhooks
        wanted = configurations(webhooks, self.instance, address=Service(self.mark, "grm"), trust=CaBundle(b""))
        await install(client, self.instance, wanted)

    async def problem(self) -> str:
        return "" if await self.find(MUTATING_WEBHOOKS, self.name) else "there is none"

    async def state(self) -> Any:
        live = await self.get(MUTATING_WEBHOOKS, self.name)
        return await self.find(VALIDATING_WEBHOOKS, self.name), [webhook["name"] for webhook in live["webhooks"]]


class NewConfigurations(InstalledConfigurations):
    crosses = crossing(f"create {MUTATING_WEBHOOKS.plural}.{_ADMISSION}")

    async def prepare(self) -> None:
        await self.make_namespace()


SCENES = scenes_of(__name__)
