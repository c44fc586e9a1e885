"""Take the steps that the rules require in the clusters: once, or as long as the process runs.

The steady state has no requests: watches of single objects report changes of Secrets and webhook configurations, and
the clock shows when a certificate is due.
"""

import asyncio
import base64
import binascii
import contextlib
import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from gardener.keys import GROUP, ORIGIN
from kube.clock import format_time, parse_time
from kube.errors import Conflict, KubeError
from kube.objects import Key, Object, annotations, labels, metadata, spec
from kube.resources import API_SERVICES, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from kube.runtime.client import Client, Form, Selection
from kube.runtime.watch import ListBegins, Watcher
from kube.x509 import Pair, load_certificates, load_pair, make_ca, make_serving, pem
from webhooks.certificates import files
from webhooks.certificates.rules import (
    CA_LIFETIME,
    SERVING_LIFETIME,
    CertificateState,
    Issue,
    MakeCa,
    NotePublished,
    Publish,
    SetBundle,
    Step,
    next_step,
    next_time,
)
from webhooks.configurations.objects import INJECT_CA_FROM, name_of
from webhooks.rules.registration import Instance

CA, CA_KEY, BUNDLE = "ca.crt", "ca.key", "bundle.crt"
PUBLISHED_AT = f"{GROUP}/ca-published-at"
_MOST_STEPS = 30
_AGAIN_AFTER_FAILURE = 30.0
_LONGEST_REST = 3600.0
"""Maximum seconds between two looks at the clock, which may have been corrected."""
_BETWEEN_ROUNDS = 1.0

log = structlog.get_logger("certificates")


class CannotKeep(Exception):
    """A user has to fix something first; the message describes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    instance: Instance
    namespace: str
    secret: str
    ca_secret: str
    names: tuple[str, ...]
    """DNS names and IP addresses of the server."""
    directory: Path | None = None
    """Additional destination of the server's certificate."""
    api_service: str = ""
    """Name of the APIService that passes requests on to the server; empty if there is none."""

    @property
    def registrations(self) -> Sequence[tuple[Resource, str]]:
        """Kind and name of each object that may hold the CA."""
        name = name_of(self.instance)
        own = [(MUTATING_WEBHOOKS, name), (VALIDATING_WEBHOOKS, name)]
        return [*own, (API_SERVICES, self.api_service)] if self.api_service else own


@dataclass(frozen=True, slots=True)
class _Seen:
    """State read in a round, and its source objects."""

    state: CertificateState
    ca_secret: Object | None
    serving_secret: Object | None
    configurations: Sequence[tuple[Resource, Object]]


class Keeper:
    """Bring certificates into order.

    Args:
        source: client of the cluster with the Secrets.
        target: client of the cluster with the webhook configurations.
        clock: returns the present time, with its zone.
    """

    def __init__(
        self,
        options: CertificateOptions,
        *,
        source: Client,
        target: Client,
        clock: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._options = options
        self._source = source
        self._target = target
        self._clock = clock

    async def run(self) -> datetime.datetime:
        """Take steps until everything is in order; return the time of the next check.

        Raises:
            CannotKeep: a Secret has another owner, files cannot be written, or other programs write the same objects.
        """
        last: KubeError | None = None
        for _ in range(_MOST_STEPS):
            seen = await self._look()
            now = self._clock()
            step = next_step(seen.state, self._options.names, now=now)
            if step is None:
                self._write_files(seen.state.serving)
                return next_time(seen.state, now=now)
            try:
                await self._take(step, seen, now)
            except Conflict as error:
                last = error  # another replica was faster
        raise CannotKeep(
            f"the certificates of {self._options.instance.app} change constantly; stop the other program that writes "
            "the same Secrets or webhook configurations"
        ) from last

    # --- looking

    async def _look(self) -> _Seen:
        options = self._options
        ca_secret = await self._secret(options.ca_secret)
        serving_secret = await self._secret(options.secret)
        configurations = [
            (resource, live)
            for resource, name in options.registrations
            if (live := await self._target.find(resource, name)) is not None
        ]
        ca_data, serving_data = _data(ca_secret), _data(serving_secret)
        bundle = ca_data.get(BUNDLE, b"")
        ca = load_pair(ca_data.get(CA), ca_data.get(CA_KEY))
        state = CertificateState(
            ca=ca,
            bundle=load_certificates(bundle),
            published_at=_published_at(ca_secret),
            serving=load_pair(serving_data.get(files.CERTIFICATE), serving_data.get(files.KEY)),
            published=all(_bundles(live) <= {bundle} for _, live in configurations if self._is_ours(live)),
            waiting_for_others=ca is not None
            and any(not _trusts(live, ca) for _, live in configurations if self._is_kept_by_deployer(live)),
        )
        return _Seen(state, ca_secret, serving_secret, configurations)

    def _is_ours(self, live: Object) -> bool:
        """Whether this keeper manages the certificates in a configuration."""
        has_our_label = labels(live).get("app") == self._options.instance.app
        return has_our_label and not {INJECT_CA_FROM, ORIGIN} & annotations(live).keys()

    def _is_kept_by_deployer(self, live: Object) -> bool:
        """Whether a configuration belongs to a ManagedResource, which would revert all changes."""
        return ORIGIN in annotations(live) and INJECT_CA_FROM not in annotations(live)

    async def _secret(self, name: str) -> Object | None:
        found = await self._source.find(SECRETS, Key(self._options.namespace, name))
        if found is not None and found.get("data") and labels(found).get("app") != self._options.instance.app:
            raise CannotKeep(
                f'secret "{self._options.namespace}/{name}" holds data and has no label '
                f'"app: {self._options.instance.app}": it may belong to another program; choose another name or '
                "delete it"
            )
        return found

    # --- steps

    async def _take(self, step: Step, seen: _Seen, now: datetime.datetime) -> None:
        match step:
            case MakeCa(beside):
                await self._make_ca(seen, beside, now)
            case SetBundle(certificates):
                await self._store(self._options.ca_secret, seen.ca_secret, {BUNDLE: pem(*certificates)})
                log.info("Changed the bundle of CAs", certificates=len(certificates))
            case Publish():
                await self._publish(seen)
            case NotePublished():
                await self._store(self._options.ca_secret, seen.ca_secret, {}, {PUBLISHED_AT: format_time(now)})
            case Issue():
                await self._issue(seen, now)

    async def _make_ca(self, seen: _Seen, beside: Sequence[Any], now: datetime.datetime) -> None:
        ca = make_ca(f"{self._options.instance.app} webhooks", now=now, lifetime=CA_LIFETIME)
        data = {CA: ca.certificate_pem, CA_KEY: ca.key_pem, BUNDLE: pem(ca.certificate, *beside)}
        await self._store(self._options.ca_secret, seen.ca_secret, data, {PUBLISHED_AT: None})
        log.info("Created a CA", until=format_time(ca.certificate.not_valid_after_utc), beside=len(beside))

    async def _issue(self, seen: _Seen, now: datetime.datetime) -> None:
        assert seen.state.ca is not None
        serving = make_serving(seen.state.ca, self._options.names, now=now, lifetime=SERVING_LIFETIME)
        data = {files.CERTIFICATE: serving.certificate_pem, files.KEY: serving.key_pem}
        await self._store(self._options.secret, seen.serving_secret, data, as_type="kubernetes.io/tls")
        log.info("Issued a certificate for the server", until=format_time(serving.certificate.not_valid_after_utc))

    async def _publish(self, seen: _Seen) -> None:
        bundle = _data(seen.ca_secret)[BUNDLE]
        for resource, live in seen.configurations:
            if self._is_ours(live) and not _bundles(live) <= {bundle}:
                await self._target.replace(resource, _with_bundle(live, base64.b64encode(bundle).decode()))
                log.info("Wrote the bundle of CAs", kind=resource.kind, name=metadata(live)["name"])

    async def _store(
        self,
        name: str,
        known: Object | None,
        data: dict[str, bytes],
        notes: dict[str, str | None] | None = None,
        *,
        as_type: str = "Opaque",
    ) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        meta: Object = {"labels": {"app": self._options.instance.app}, "annotations": notes or {}}
        if known is not None:
            meta["resourceVersion"] = metadata(known)["resourceVersion"]
            patch = {"metadata": meta, "data": encoded}
            await self._source.patch(SECRETS, Key(self._options.namespace, name), patch)
            return
        meta |= {"name": name, "namespace": self._options.namespace}
        meta["annotations"] = {key: note for key, note in meta["annotations"].items() if note is not None}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": as_type, "metadata": meta, "data": encoded}
        await self._source.create(SECRETS, secret)

    def _write_files(self, serving: Pair | None) -> None:
        directory = self._options.directory
        if directory is None or serving is None:
            return
        try:
            if files.write(directory, serving):
                log.info("Wrote the certificate of the server", directory=str(directory))
        except OSError as error:
            raise CannotKeep(f"cannot write the certificate to {directory}: {error.strerror}") from error


def _data(secret: Object | None) -> dict[str, bytes]:
    """Data of a Secret; broken base64 counts as empty."""
    decoded = {}
    for key, value in ((secret or {}).get("data") or {}).items():
        try:
            decoded[key] = base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError):
            decoded[key] = b""
    return decoded


def _published_at(ca_secret: Object | None) -> datetime.datetime | None:
    try:
        return parse_time(annotations(ca_secret or {})[PUBLISHED_AT])
    except (KeyError, ValueError):
        return None


def _with_bundle(live: Object, encoded: str) -> Object:
    if "webhooks" not in live:
        return {**live, "spec": {**spec(live), "caBundle": encoded}}
    webhooks = [
        {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": encoded}} for webhook in live["webhooks"]
    ]
    return {**live, "webhooks": webhooks}


def _bundles(configuration: Object) -> set[bytes]:
    """CA bundles trusted by the webhooks of a configuration, or by an APIService."""
    if "webhooks" not in configuration and "service" in spec(configuration):
        return {base64.b64decode(spec(configuration).get("caBundle") or "")}
    encoded = {webhook["clientConfig"].get("caBundle") or "" for webhook in configuration.get("webhooks") or []}
    return {base64.b64decode(one) for one in encoded}


def _trusts(configuration: Object, ca: Pair) -> bool:
    return all(ca.certificate in load_certificates(bundle) for bundle in _bundles(configuration))


# --- for as long as the process runs


async def keep(
    keeper: Keeper,
    watched: Sequence[tuple[Client, Resource, str, str]],
    *,
    clock: Callable[[], datetime.datetime],
    between_rounds: float = _BETWEEN_ROUNDS,
) -> None:
    """Run until cancelled.

    `watched` are client, resource, namespace and name of each object whose changes matter; `between_rounds` are the
    minimum seconds between two rounds, however often objects change.
    """
    changed = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for client, resource, namespace, name in watched:
            tasks.create_task(_wake(changed, client, resource, namespace, name))
        while True:
            changed.clear()
            rest = await _round(keeper, clock)
            await asyncio.sleep(between_rounds)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await changed.wait()


async def _round(keeper: Keeper, clock: Callable[[], datetime.datetime]) -> float:
    """Run one round; return the seconds until the next."""
    try:
        due = await keeper.run()
    except (KubeError, CannotKeep) as error:
        log.error("Cannot update the certificates; trying again", error=str(error))
        return _AGAIN_AFTER_FAILURE
    return min(max((due - clock()).total_seconds(), 0.0), _LONGEST_REST)


async def _wake(changed: asyncio.Event, client: Client, resource: Resource, namespace: str, name: str) -> None:
    selection = Selection(namespace=namespace, field_selector=f"metadata.name={name}")
    watcher = Watcher(client, resource, selection, form=Form.METADATA)
    async with contextlib.aclosing(watcher.events()) as events:
        async for event in events:
            # The end of a list counts, too: an object that is not in it may have existed in the last round.
            if not isinstance(event, ListBegins):
                changed.set()
