"""`kubectl mr check`: whether all is there that ManagedResources need, and what to do where it is not."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from cryptography import x509

from gardener.kinds import MANAGED_RESOURCES
from gardener.overview.states import State, state_of
from kube.client import Selection
from kube.clock import parse_time
from kube.errors import Forbidden, KindNotServed, KubeError, NotFound
from kube.objects import Object, condition, key
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, SECRETS, Resource
from kubectl_mr import options, output, webhook_entries
from kubectl_mr.session import KindMissing, Session, on_cluster
from kubectl_mr.style import BLUE, GREEN, RED, YELLOW, Line, Word, counted, short_list

_DEFINITION = f"{MANAGED_RESOURCES.plural}.{MANAGED_RESOURCES.group}"
_LEASE = "gardener-resource-manager"
_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_NEEDED = (("list", MANAGED_RESOURCES), ("patch", MANAGED_RESOURCES), ("get", SECRETS))
_SOON = timedelta(days=14)


class Level(StrEnum):
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str
    remedy: str = ""


@on_cluster(target=False)
async def command(
    session: Session, *, all_namespaces: options.AllNamespacesFlag = False, form: options.FormFlag = None
) -> int:
    """Agents and ManagedResources are looked for in one namespace, or with -A in all.

    Exit code 1: something is missing.
    """
    found = await _all(session, "" if all_namespaces else session.namespace)
    if form is not None:
        output.show_data([{"level": f.level, "text": f.text, "remedy": f.remedy} for f in found], form)
    else:
        output.show(lines(found))
    return 1 if any(finding.level is Level.BAD for finding in found) else 0


Check = Callable[[Session, str], Awaitable[list[Finding]]]


async def _all(session: Session, namespace: str) -> list[Finding]:
    """An API server that does not answer is an error; what may not be read is a finding."""
    version = await session.source.client.read("/version")
    found = [Finding(Level.GOOD, f"the API server answers: Kubernetes {version.get('gitVersion')}")]
    checks: Sequence[tuple[str, Check]] = (
        ("the definition of ManagedResources", _definition),
        ("your permissions", _permissions),
        ("leases of agents", _agents),
        ("ManagedResources", _managed_resources),
        ("webhook configurations", _webhooks),
    )
    for what, check in checks:
        try:
            found += await check(session, namespace)
        except Forbidden:
            found.append(Finding(Level.WARNING, f"{what}: you may not read them", "ask somebody who may"))
        except (KindNotServed, KindMissing):
            continue  # what is missing was told by the first check
    return found


async def _definition(session: Session, _: str) -> list[Finding]:
    try:
        definition = await session.source.client.get(CUSTOM_RESOURCE_DEFINITIONS, _DEFINITION)
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


async def _permissions(session: Session, namespace: str) -> list[Finding]:
    missing = []
    for verb, resource in _NEEDED:
        attributes = {"verb": verb, "group": resource.group, "resource": resource.plural, "namespace": namespace}
        review = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind, "spec": {"resourceAttributes": attributes}}
        answer = await session.source.client.create(_REVIEWS, review)
        if not (answer.get("status") or {}).get("allowed"):
            missing.append(f"{verb} {resource.plural}")
    if missing:
        text = f"you may not {', '.join(missing)} {_in(namespace)}"
        return [Finding(Level.WARNING, text, "some commands will not work; ask for the permission")]
    return [Finding(Level.GOOD, f"you may see and steer ManagedResources {_in(namespace)}")]


def _in(namespace: str) -> str:
    return f"in namespace {namespace}" if namespace else "in all namespaces"


async def _agents(session: Session, namespace: str) -> list[Finding]:
    leases = await session.source.client.list(
        LEASES, Selection(namespace=namespace, field_selector=f"metadata.name={_LEASE}")
    )
    now = datetime.now(UTC)
    if not leases:
        text = f"no agent has a Lease {_LEASE} {_in(namespace)}"
        return [Finding(Level.WARNING, text, "start one; without leader election, or with another Lease, all is well")]
    return [lease_finding(lease, now) for lease in leases]


def lease_finding(lease: Object, now: datetime) -> Finding:
    spec = lease.get("spec") or {}
    where, holder = key(lease).namespace, spec.get("holderIdentity") or ""
    if not holder or not spec.get("renewTime"):
        return Finding(Level.BAD, f"no agent leads in namespace {where}", "is one running there? See its log")
    silent = (now - parse_time(spec["renewTime"])).total_seconds()
    if silent > 2 * (spec.get("leaseDurationSeconds") or 15):
        text = f"the agent in namespace {where} has not been heard of for {silent:.0f} s ({holder})"
        return Finding(Level.BAD, text, "is it running? See its log")
    return Finding(Level.GOOD, f"an agent leads in namespace {where}")


async def _managed_resources(session: Session, namespace: str) -> list[Finding]:
    states: dict[State, list[str]] = {}
    async for page in session.pages(namespace):
        for item in page:
            states.setdefault(state_of(item), []).append(str(key(item)))
    return state_findings(states)


_REMEDIES = {
    State.FAILED: "kubectl mr describe tells what to do",
    State.UNHEALTHY: "kubectl mr describe tells what to do",
    State.SUSPENDED: "kubectl mr resume, if nobody works on them any more",
    State.PENDING: "is an agent running for their class?",
}


def state_findings(states: dict[State, list[str]]) -> list[Finding]:
    total = sum(map(len, states.values()))
    found = [
        Finding(Level.WARNING, f"{state.value.lower()}: {short_list(states[state])}", remedy)
        for state, remedy in _REMEDIES.items()
        if state in states
    ]
    ready = len(states.get(State.READY, ()))
    return [Finding(Level.GOOD, f"{ready} of {counted(total, 'ManagedResource')} ready"), *found]


# --- webhooks


async def _webhooks(session: Session, _: str) -> list[Finding]:
    entries = await webhook_entries.read(session.source.client)
    if not entries:
        return [Finding(Level.GOOD, "no webhooks of this project are registered")]
    found: list[Finding] = []
    now = datetime.now(UTC)
    for address, of_address in webhook_entries.by_address(entries).items():
        names = sorted({entry.configuration for entry in of_address})
        where = f"webhooks of {', '.join(names)} at {address}"
        try:
            problem = await webhook_entries.problem_with(session.source.client, of_address[0])
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
    try:
        certificates = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return Finding(Level.BAD, f"{where} holds no certificates", "write the webhook configurations anew")
    last = max(certificate.not_valid_after_utc for certificate in certificates)
    if last < now:
        return Finding(Level.BAD, f"{where} expired on {last:%Y-%m-%d}", "renew it, and the server's certificate")
    if last - now < _SOON:
        return Finding(Level.WARNING, f"{where} expires on {last:%Y-%m-%d}", "renew it, if nothing does so by itself")
    return Finding(Level.GOOD, f"{where} is good until {last:%Y-%m-%d}")


# --- words

_MARKS = {Level.GOOD: Word("✔ ", GREEN), Level.WARNING: Word("⚠ ", YELLOW), Level.BAD: Word("✗ ", RED)}


def lines(found: Sequence[Finding]) -> Iterator[Line]:
    for finding in found:
        yield [_MARKS[finding.level], finding.text]
        if finding.remedy:
            yield ["  ", Word("► ", BLUE), finding.remedy]
