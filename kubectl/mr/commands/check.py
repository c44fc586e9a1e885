"""`kubectl mr check`: whether the prerequisites of ManagedResources are met, with remedies."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import click

from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.overview.states import ResourceState, state_of, warnings_of
from gardener.responsibility import DEFAULT_CLASS, EVERY_CLASS, class_of, handles
from kube.access_reviews import attributes, is_allowed, self_review
from kube.clock import parse_time
from kube.errors import ApiError, Forbidden, KindNotServed, KubeError, NotFound
from kube.objects import Object, annotations, condition, key
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS, SELF_SUBJECT_ACCESS_REVIEWS
from kube.x509 import load_certificates
from kubectl import options, output
from kubectl.mr import managed_resources, parameters, webhook_entries
from kubectl.mr.agents import leases_in
from kubectl.mr.managed_resources import KindMissing
from kubectl.output import Form
from kubectl.session import Session, on_cluster
from kubectl.style import BLUE, GREEN, RED, YELLOW, Line, Word, counted, short_list

_DEFINITION = f"{MANAGED_RESOURCES.plural}.{MANAGED_RESOURCES.group}"
_NEEDED = (("list", MANAGED_RESOURCES), ("patch", MANAGED_RESOURCES), ("get", SECRETS))
_SOON = timedelta(days=14)


class Level(StrEnum):
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    UNKNOWN = "unknown"
    """It can't be checked."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str
    remedy: str = ""


@click.command
@parameters.all_namespaces("all_namespaces")
@options.form
@on_cluster(target=False)
async def command(session: Session, *, all_namespaces: bool, form: Form | None) -> int:
    """Checks ManagedResources in one namespace, or with -A in all; agents in all namespaces, if this one has none.

    Exit code 1: a check failed or was not possible.
    """
    found = await _all(session, "" if all_namespaces else session.namespace)
    if form is not None:
        output.show_data([{"level": f.level, "text": f.text, "remedy": f.remedy} for f in found], form)
    else:
        output.show(lines(found))
    return 1 if any(finding.level in {Level.BAD, Level.UNKNOWN} for finding in found) else 0


@dataclass(frozen=True, slots=True)
class _Look:
    """Namespace to check, and results that other checks need.

    Attributes:
        namespace: empty: all.
        classes: of leading agents; None: of one without a class in its Lease.
    """

    session: Session
    namespace: str
    classes: set[str | None] = field(default_factory=set)


Check = Callable[[_Look], Awaitable[list[Finding]]]


async def _all(session: Session, namespace: str) -> list[Finding]:
    """Run all checks. An API server that does not answer is an error; missing rights are a finding."""
    version = await session.source.client.read("/version")
    found = [Finding(Level.GOOD, f"the API server answers: Kubernetes {version.get('gitVersion')}")]
    checks: Sequence[tuple[str, Check]] = (
        ("the definition of ManagedResources", _definition),
        ("your permissions", _permissions),
        ("leases of agents", _agents),
        ("ManagedResources", _managed_resources),
        ("webhook configurations", _webhooks),
    )
    look = _Look(session, namespace)
    for what, check in checks:
        try:
            found += await check(look)
        except Forbidden:
            found.append(
                Finding(Level.UNKNOWN, f"{what}: you may not read them", "have a user with this right run the check")
            )
        except (KindNotServed, KindMissing):
            continue  # the first check reported what is missing
        except ApiError as error:
            found.append(Finding(Level.UNKNOWN, f"{what} can't be read: {error}", "see the log of the API server"))
    return found


async def _definition(look: _Look) -> list[Finding]:
    try:
        definition = await look.session.source.client.get(CUSTOM_RESOURCE_DEFINITIONS, _DEFINITION)
    except NotFound:
        text = f"the CustomResourceDefinition {_DEFINITION} does not exist"
        return [Finding(Level.BAD, text, "kubectl apply -f manifests/crds, of this project")]
    return [definition_finding(definition)]


def definition_finding(definition: Object) -> Finding:
    versions = {v.get("name"): v for v in (definition.get("spec") or {}).get("versions") or []}
    found = versions.get(MANAGED_RESOURCES.version)
    if found is None or not found.get("served"):
        text = f"the CustomResourceDefinition does not serve {MANAGED_RESOURCES.version}"
        return Finding(Level.BAD, text, "apply that of this project")
    if (condition(definition, "Established") or {}).get("status") != "True":
        return Finding(Level.BAD, "the CustomResourceDefinition is not established", "see its conditions")
    schema = (found.get("schema") or {}).get("openAPIV3Schema") or {}
    status = ((schema.get("properties") or {}).get("status") or {}).get("properties") or {}
    if "pendingResources" not in status:
        text = "the CustomResourceDefinition is that of the original: status.pendingResources is not stored"
        return Finding(Level.WARNING, text, "apply that of this project; objects may be forgotten after a crash")
    return Finding(Level.GOOD, f"ManagedResources are served as {MANAGED_RESOURCES.version}")


async def _permissions(look: _Look) -> list[Finding]:
    missing, namespace = [], look.namespace
    for verb, resource in _NEEDED:
        review = self_review(attributes(verb, resource, namespace=namespace))
        if not is_allowed(await look.session.source.client.create(SELF_SUBJECT_ACCESS_REVIEWS, review)):
            missing.append(f"{verb} {resource.plural}")
    if missing:
        text = f"you may not {', '.join(missing)} {_in(namespace)}"
        return [Finding(Level.WARNING, text, "some commands will not work; request the permission")]
    return [Finding(Level.GOOD, f"you may see and steer ManagedResources {_in(namespace)}")]


def _in(namespace: str) -> str:
    return f"in namespace {namespace}" if namespace else "in all namespaces"


async def _agents(look: _Look) -> list[Finding]:
    namespace, now = look.namespace, datetime.now(UTC)
    leases = await leases_in(look.session, namespace)
    if not leases and namespace:
        try:
            leases = await leases_in(look.session, "")  # an agent may serve many namespaces
        except Forbidden:
            text = f"no agent has a Lease {_in(namespace)}, and you may not look for one in others"
            return [Finding(Level.WARNING, text, "have a user with this right run: kubectl mr check -A")]
    if not leases:
        text = f"no agent has a Lease {_in('')}"
        return [Finding(Level.WARNING, text, "start one; without leader election, all is well")]
    found = [(lease, lease_finding(lease, now)) for lease in leases]
    look.classes.update(annotations(lease).get(keys.CLASS) for lease, finding in found if finding.level is Level.GOOD)
    return [finding for _, finding in found]


def lease_finding(lease: Object, now: datetime) -> Finding:
    spec = lease.get("spec") or {}
    where, holder = key(lease).namespace, spec.get("holderIdentity") or ""
    if not holder or not spec.get("renewTime"):
        return Finding(Level.BAD, f"no agent leads in namespace {where}", "is one running there? See its log")
    silent = (now - parse_time(spec["renewTime"])).total_seconds()
    if silent > 2 * (spec.get("leaseDurationSeconds") or 15):
        text = f"the agent in namespace {where} has not been heard of for {silent:.0f} s ({holder})"
        return Finding(Level.BAD, text, "is it running? See its log")
    own = annotations(lease).get(keys.CLASS)
    return Finding(Level.GOOD, f"an agent leads in namespace {where}{f', for {_class(own)}' if own else ''}")


def _class(name: str) -> str:
    if name == EVERY_CLASS:
        return "every class"
    return f"the class {name}" + (" (the default)" if name == DEFAULT_CLASS else "")


async def _managed_resources(look: _Look) -> list[Finding]:
    states: dict[ResourceState, list[str]] = {}
    pending: dict[str, list[str]] = {}
    warned: list[str] = []
    async for page in managed_resources.pages(look.session, look.namespace):
        for item in page:
            state, name = state_of(item), str(key(item))
            states.setdefault(state, []).append(name)
            if state is ResourceState.PENDING:
                pending.setdefault(class_of(item) or DEFAULT_CLASS, []).append(name)
            if warnings_of(item):
                warned.append(name)
    return [*state_findings(states), *pending_findings(pending, look.classes), *warning_findings(warned)]


def warning_findings(names: list[str]) -> list[Finding]:
    text = f"applied with warnings: {short_list(names)}"
    return [Finding(Level.WARNING, text, "kubectl mr describe NAME -n NAMESPACE shows them")] if names else []


_REMEDIES = {
    ResourceState.FAILED: (Level.BAD, "kubectl mr describe NAME -n NAMESPACE shows what to do"),
    ResourceState.UNHEALTHY: (Level.BAD, "kubectl mr describe NAME -n NAMESPACE shows what to do"),
    ResourceState.SUSPENDED: (Level.WARNING, "kubectl mr resume NAME -n NAMESPACE, if no one works on them any more"),
}


def state_findings(states: dict[ResourceState, list[str]]) -> list[Finding]:
    total, ready = sum(map(len, states.values())), len(states.get(ResourceState.READY, ()))
    level = Level.GOOD if ready == total else Level.WARNING
    return [
        Finding(level, f"{ready} of {counted(total, 'ManagedResource')} ready"),
        *(
            Finding(level, f"{state.value.lower()}: {short_list(states[state])}", remedy)
            for state, (level, remedy) in _REMEDIES.items()
            if state in states
        ),
    ]


def pending_findings(pending: Mapping[str, Sequence[str]], leading: AbstractSet[str | None]) -> Iterator[Finding]:
    """Report ManagedResources that no agent has processed yet.

    Args:
        pending: names, by their class.
        leading: classes of agents; None: of one without a class in its Lease.
    """
    own = sorted(name for name in leading if name)
    for wanted, names in sorted(pending.items()):
        text = f"pending, of {_class(wanted)}: {short_list(names)}"
        if any(handles(name, wanted) for name in own):
            yield Finding(Level.WARNING, text, "an agent is about to look at them; if it does not, see its log")
        elif None in leading:
            yield Finding(Level.WARNING, text, "is the agent of this class?")
        elif own:
            theirs = ", ".join(map(_class, own))
            yield Finding(Level.BAD, text, f"set spec.class: the agents found are for {theirs}")
        else:
            yield Finding(Level.BAD, text, "start an agent of this class")


# --- webhooks


async def _webhooks(look: _Look) -> list[Finding]:
    client = look.session.source.client
    entries = await webhook_entries.read(client)
    if not entries:
        return [Finding(Level.GOOD, "no webhooks of this project are registered")]
    found: list[Finding] = []
    now = datetime.now(UTC)
    for address, of_address in webhook_entries.by_address(entries).items():
        names = sorted({entry.configuration for entry in of_address})
        where = f"webhooks of {', '.join(names)} at {address}"
        try:
            problem = await webhook_entries.problem_with(client, of_address[0])
        except KubeError as error:
            problem = str(error)
        if problem:
            found.append(Finding(Level.BAD, f"{where}: {problem}", "is the server running? See its log"))
        else:
            found.append(Finding(Level.GOOD, f"{where} can be reached"))
        found.append(bundle_finding(names, of_address[0].ca_bundle, now))
    return found


def bundle_finding(names: Sequence[str], bundle: bytes, now: datetime) -> Finding:
    where = f"CA bundle of {', '.join(names)}"
    if not bundle:
        return Finding(
            Level.WARNING, f"{where}: there is none", "right only if a public authority signs the certificate"
        )
    certificates = load_certificates(bundle)
    if not certificates:
        return Finding(Level.BAD, f"{where} holds no certificates", "write the webhook configurations again")
    last = max(certificate.not_valid_after_utc for certificate in certificates)
    if last < now:
        return Finding(Level.BAD, f"{where} expired on {last:%Y-%m-%d}", "renew it, and the server's certificate")
    if last - now < _SOON:
        return Finding(Level.WARNING, f"{where} expires on {last:%Y-%m-%d}", "renew it, if nothing does so by itself")
    return Finding(Level.GOOD, f"{where} is good until {last:%Y-%m-%d}")


# --- output

_MARKS = {
    Level.GOOD: Word("✔ ", GREEN),
    Level.WARNING: Word("⚠ ", YELLOW),
    Level.BAD: Word("✗ ", RED),
    Level.UNKNOWN: Word("? ", RED),
}


def lines(found: Sequence[Finding]) -> Iterator[Line]:
    for finding in found:
        yield [_MARKS[finding.level], finding.text]
        if finding.remedy:
            yield ["  ", Word("► ", BLUE), finding.remedy]
