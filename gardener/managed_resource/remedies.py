"""Remedies for errors of an API server: the same for conditions, `kubectl mr` and the status page.

Quotas, PodSecurity, webhooks, policies and missing permissions all are `Forbidden`; they differ in the text only.
So texts are matched first, in the words of Kubernetes, and the reason of the answer only if none of them fits.
Conditions carry remedies behind the errors; the errors in a condition lead to the same remedies again.

A remedy names the part to change: for an error of validation the field, by its path in the manifest. If the text
does not name it, there is no remedy: 'correct the manifest' would only repeat the error.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gardener import keys
from kube.errors import (
    ApiError,
    BadRequest,
    Invalid,
    KindNotServed,
    NotReady,
    TooLarge,
    TooManyRequests,
)
from kube.objects import group_of
from kube.resources import BUILT_IN_GROUPS, Resource

_LONGEST = 8_192
"""Maximum number of characters that are matched."""
_MOST = 3
"""Maximum number of remedies for one ManagedResource; the others follow after these are applied."""


@dataclass(frozen=True, slots=True)
class _Case:
    pattern: re.Pattern[str]
    remedy: str | Callable[[re.Match[str]], str]

    def of(self, text: str) -> str:
        found = self.pattern.search(text)
        if found is None:
            return ""
        return self.remedy.format(**found.groupdict()) if isinstance(self.remedy, str) else self.remedy(found)


def _permission(found: re.Match[str]) -> str:
    group = f".{found['group']}" if found["group"] else ""
    where = f"in namespace {found['namespace']}" if found["namespace"] else "in the whole cluster"
    return f"allow {found['user']} to {found['verb']} {found['plural']}{group} {where}, in the target cluster"


def _case(pattern: str, remedy: str | Callable[[re.Match[str]], str]) -> _Case:
    return _Case(re.compile(pattern), remedy)


_REPLACE = (
    f"undo the change of {{path}}, or have the object recreated by the annotation {keys.DELETE_ON_INVALID_UPDATE}"
)
_FREE = "remove {path} to get a free one, or set one that no other port or Service has"
_IMMUTABLE = (
    r"\b(?:is )?immutable\b|updates to statefulset spec for fields other than"
    r"|(?:pod|node) updates may not change \w+|may not change once set|cannot change roleRef"
    r"|(?:field can ?not|may not) be changed|updates to \w+ are forbidden|failed rule: self == oldSelf"
)
_BY_ADMISSION = (
    r'admission webhook "[^"]+" denied the request'
    r"|ValidatingAdmissionPolicy '[^']+' with binding '[^']+' denied request"
)


_IS_RECREATED = re.compile(r"object recreated by the annotation|delete the object, which is then recreated")
_LOST = {
    "PersistentVolumeClaim": "the data on its volume",
    "PersistentVolume": "the data on it",
    "CustomResourceDefinition": "all objects of its kind",
    "Namespace": "all objects in it",
}
_LOSES_DATA = re.compile(
    r"(?:^|/|: )(?P<kind>" + "|".join(_LOST) + r')(?:\.apiextensions\.k8s\.io)? "[^"]*" is invalid: '
)


def _immutable_by_admission(found: re.Match[str]) -> str:
    if found["invalid"]:
        return _REPLACE.format(path="the field")
    return (
        "undo the change of the field, or delete the object, which is then recreated (the annotation "
        f"{keys.DELETE_ON_INVALID_UPDATE} needs the answer Invalid)"
    )


_CASES = (
    # Texts of others come first: they may quote anything.
    _case(
        rf"(?P<invalid>is invalid: \W*)?(?:{_BY_ADMISSION}).*?(?:{_IMMUTABLE})",
        _immutable_by_admission,
    ),
    _case(
        r'admission webhook "(?P<name>[^"]+)" denied the request',
        "change the field that the webhook {name} rejects, or contact its operator",
    ),
    _case(
        r'fail(?:ed|ing) (?:to call|calling) webhook "(?P<name>[^"]+)"',
        "check that the server of the webhook {name} is reachable and its certificate valid",
    ),
    _case(
        r"ValidatingAdmissionPolicy '(?P<name>[^']+)' with binding '[^']+' denied request",
        "change the field that the ValidatingAdmissionPolicy {name} rejects, or have its binding changed",
    ),
    _case(
        r"exceeded quota: (?P<name>[^,]+), requested",
        "raise the ResourceQuota {name}, or request less",
    ),
    _case(
        r"failed quota: (?P<name>[^:]+): must specify",
        "set the requests and limits in the message, or have a LimitRange set them; the ResourceQuota {name} requires "
        "them",
    ),
    _case(
        r'(?:would violate|violates) PodSecurity "(?P<level>[^":]+)',
        "set the fields of securityContext in the message, or lower the level {level} of that Namespace "
        "(labels pod-security.kubernetes.io/…)",
    ),
    _case(
        r"(?:maximum|minimum) (?P<resource>\S+) usage per (?P<type>Container|Pod|PersistentVolumeClaim) is",
        "set {resource} in the resources of each {type} within the LimitRange of the namespace, or have the "
        "LimitRange changed",
    ),
    _case(
        r'user "(?P<user>[^"]+)" \(groups=.*?\) is attempting to grant RBAC permissions not currently held',
        "a user can only grant permissions that it has; give {user} these permissions, or the verbs escalate and bind",
    ),
    _case(
        r"must have cluster-admin privileges to use (?:the|an) aggregationRule",
        "a user can only grant permissions that it has; remove the aggregationRule, or grant the verb escalate on "
        "clusterroles",
    ),
    _case(
        r'User "(?P<user>[^"]+)" cannot (?P<verb>\S+) resource "(?P<plural>[^"]+)"'
        r'(?: in API group "(?P<group>[^"]*)")?(?: in the namespace "(?P<namespace>[^"]+)")?',
        _permission,
    ),
    _case(r"because it is being terminated", "wait until that Namespace is deleted; it is recreated then"),
    _case(r'no matches for kind "[^"]+" in version "[^"]+"; (?P<remedy>[^\]]+)', "{remedy}"),
    _case(
        r'no matches for kind "(?P<kind>[^"]+)" in version "(?P<version>[^"]+)"',
        lambda found: unserved_remedy(found["version"], found["kind"], ()),
    ),
    _case(
        r'(?:unknown|duplicate) field "(?P<path>[^"]+)"',
        "correct the name of the field {path}, or remove it; newer versions of Kubernetes may have it",
    ),
    _case(r'field "(?P<path>[^"]+)" is not changed: .*?, so (?P<remedy>[^;]+)', "{path}: {remedy}"),
    _case(
        r'field "(?P<path>[^"]+)" was not stored',
        "remove the field {path}, or have it enabled in the cluster (feature gates, webhooks that remove it)",
    ),
    _case(
        r"cannot unmarshal \S+ into Go struct field [^.\s]+\.(?P<path>\S+) of type ",
        "correct the type of {path}; quote strings, but not numbers and booleans",
    ),
    _case(r"^.{,500}?Secret in version .*illegal base64", "write data in base64, or plain text in stringData"),
    _case(r"^.{,500}?ConfigMap in version .*illegal base64", "write binaryData in base64, or plain text in data"),
    _case(
        r"resourceVersion should not be set on objects to be created|strconv\.ParseUint: parsing ",
        "remove metadata.resourceVersion from the manifest",
    ),
    _case(r"Precondition failed: UID in precondition", "remove metadata.uid from the manifest, if set"),
    _case(
        r"failed to allocate requested HealthCheck NodePort",
        "remove spec.healthCheckNodePort to get a free port, or set one that no other Service has",
    ),
    _case(r"^(?!.{,500}is invalid: ).*duplicate nodePort", f"{_FREE.format(path='spec.ports[*].nodePort')}"),
    _case(
        r"conversion webhook for (?P<kind>[^:]*(?:, Kind=)?\S+) failed",
        "check that the server of spec.conversion.webhook of the CustomResourceDefinition is reachable ({kind})",
    ),
    _case(
        r'namespaces "(?P<name>[^"]+)" not found',
        "add the Namespace {name} to the objects, or create it",
    ),
    _case(
        r'serviceaccount "(?P<name>[^"]+)" not found',
        "add the ServiceAccount {name} to the objects, or create it",
    ),
    _case(
        r"no PriorityClass with name (?P<name>\S+) was found",
        "add the PriorityClass {name} to the objects, or create it",
    ),
    _case(
        r"is deprecated in v\S+, unavailable in v(?P<version>[\d.]+)",
        "use another apiVersion before the cluster is upgraded to Kubernetes {version}",
    ),
    _case(r"is held by ManagedResource", "remove the object from one of the two ManagedResources"),
    _case(r"ause of 'invalid' update error", "wait: the object is recreated"),
)


# --- errors of validation

_FIELD_ERROR = re.compile(
    r"(?<![^\s\[])(?P<path>[A-Za-z\[][^\s:\"{}]*): (?P<type>Invalid value|Required value|Forbidden|Duplicate value"
    r"|Not found|Unsupported value|Too long|Too many|Internal error)"
)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_CAPITAL = re.compile(r"(?<![^.])[A-Z]")
_WHOLE = "[]"
"""Path of the object itself in errors of API servers."""
_BY_DETAIL = tuple(
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        (_IMMUTABLE, _REPLACE),
        (
            r"may only be (?:used|set) when `type` is '(?P<type>\w+)' and `externalTrafficPolicy` is '(?P<policy>\w+)'",
            "remove {path}, or set spec.type to {type} and spec.externalTrafficPolicy to {policy}",
        ),
        (
            r"may only be (?:used|set) when `type` is '(?P<type>\w+)'",
            "remove {path}, or set spec.type to {type}",
        ),
        (
            r"may not be (?:used|set) when `type` is 'ClusterIP'|externally-accessible services|on NodePort and Load",
            "remove {path}, or set spec.type to NodePort or LoadBalancer",
        ),
        (r"may not be (?:used|set) when `type` is '(?P<type>\w+)'", "remove {path}, or {type} from spec.type"),
        (r"already allocated|duplicate nodePort", _FREE),
        (
            r"(?P<version>\S+) was previously a storage version, and must remain in spec.versions",
            (
                "keep {version} in spec.versions, or write all stored objects again in another storage version "
                "(migration), and then take {version} out of status.storedVersions of the live object"
            ),
        ),
        (
            r"not in the valid range|does not match the current range",
            "remove {path} to get a valid one, or set one of the valid range",
        ),
        (r"`selector` does not match template `labels`", "give {path} all labels of spec.selector"),
    )
)
_BY_TYPE = {
    "Required value": "add {path}",
    "Duplicate value": "remove {path}, or set another value; it occurs twice",
    "Not found": "correct {path}: no object of the manifest has that name",
    "Unsupported value": "set {path} to one of the supported values",
    "Forbidden": "remove {path}, or change the field that forbids it",
    "Too long": "shorten {path}",
    "Too many": "shorten {path}",
}


def _of_validation(text: str) -> str:
    """Remedies for the fields that an API server refuses."""
    _, _, errors = text.partition("is invalid: ")
    errors = _QUOTED.sub('""', errors)
    found = list(_FIELD_ERROR.finditer(errors))
    paths: dict[str, dict[str, None]] = {}
    for number, error in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(errors)
        if error["path"] == _WHOLE:
            return "divide the object" if error["type"] == "Too long" else ""
        path = _CAPITAL.sub(lambda capital: capital[0].lower(), error["path"].lstrip("["))
        detail = errors[error.end() : end]
        paths.setdefault(_remedy_of_field(error["type"], detail, in_status=path.startswith("status")), {})[path] = None
    return "; ".join(remedy.format(path=_shortened(list(of_one))) for remedy, of_one in list(paths.items())[:_MOST])


def _remedy_of_field(error_type: str, detail: str, *, in_status: bool) -> str:
    """Remedy with a placeholder for the path."""
    for pattern, remedy in _BY_DETAIL:
        if found := pattern.search(detail):
            return remedy.format(path="{path}", **found.groupdict())
    if in_status:
        return "correct {path} in the live object: the manifest does not determine its status"
    return _BY_TYPE.get(error_type, "correct {path}")


def _shortened(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    return f"{', '.join(paths[:_MOST])}{more}"


def remedy_of(text: str) -> str:
    """Remedy for one error or warning; empty if none is known."""
    text = text[:_LONGEST]
    remedy = next((remedy for case in _CASES if (remedy := case.of(text))), "") or _of_validation(text)
    loses = _LOSES_DATA.search(text) if _IS_RECREATED.search(remedy) else None
    return f"{remedy}, which loses {_LOST[loses['kind']]}, so make a copy first" if loses else remedy


def is_replaceable(text: str) -> bool:
    """Whether an update that was refused as invalid may lead to another object, if the manifest permits that.

    Admission may refuse updates for reasons that deletion must not bypass, such as a freeze.
    """
    text = text[:_LONGEST]
    return re.search(_BY_ADMISSION, text) is None or re.search(_IMMUTABLE, text) is not None


def with_remedy(text: str, error: Exception) -> str:
    """The text of an error, and its remedy."""
    remedy = remedy_of(text) or _by_type(error)
    return f"{text}; {remedy}" if remedy else text


_ERRORS = re.compile(r'(?:, )?(?=(?:error during apply of object|deletion of old resource) ")')
_WARNINGS = re.compile(r"; |, (?=(?:unknown|duplicate) field|field \")")


_NAME_IN_ERROR = re.compile(
    r'^(?:error during apply of object|deletion of old resource) "(?:[^"/]+/)?v\d[^"/]*/([^"]+)"'
)
_NAME_IN_WARNING = re.compile(r"^(?:[^/\s]+/)?v\d[^/\s]*/(\S+): ")


def remedies_of_failure(message: str) -> list[str]:
    """Remedies for the errors in the message of a condition; each once, with the names of the objects."""
    return _each_once(_ERRORS.split(message), _NAME_IN_ERROR)


def remedies_of_warnings(text: str) -> list[str]:
    """Remedies for the warnings in the message of a condition, likewise."""
    return _each_once(_WARNINGS.split(text), _NAME_IN_WARNING)


def _each_once(texts: Iterable[str], naming: re.Pattern[str]) -> list[str]:
    names: dict[str, dict[str, None]] = {}
    name = ""
    for text in texts:
        # Only the first of several warnings about one object has its name.
        name = found[1] if (found := naming.match(text)) else name
        if remedy := remedy_of(text):
            names.setdefault(remedy, {})[name] = None
    return [_named(list(objects), remedy) for remedy, objects in list(names.items())[:_MOST]]


def _named(objects: Sequence[str], remedy: str) -> str:
    shown = ", ".join(filter(None, objects[:_MOST]))
    more = f" and {len(objects) - _MOST} more" if len(objects) > _MOST else ""
    return f"{shown}{more}: {remedy}" if shown else remedy


_OF_SERVERS = re.compile(r"etcd|rpc error|context (?:deadline|canceled)|connection|time(?:d )?out|EOF|no space|panic")
"""Errors of status 500 that the object does not cause; it may cause others, such as of its allocation."""


def _by_type(error: Exception) -> str:
    match error:
        case TooLarge():
            return "divide the object"
        case Invalid() | BadRequest():
            fields = [path for cause in error.causes if (path := str(cause.get("field") or "")) not in {"", _WHOLE}]
            return f"correct {_shortened(list(dict.fromkeys(fields)))}" if fields else ""
        case NotReady():
            return "wait: admission of that API server has just started"
        case TooManyRequests():
            return "wait: that API server is overloaded"
        case ApiError() if error.status >= 500 and (error.status > 500 or _OF_SERVERS.search(str(error))):
            return "check the log of that API server if the error persists"
    return ""


# --- kinds that are not served

_ALIKE = 0.75
"""Minimum similarity of names that may be mistaken for each other."""
_EDITS = 2
"""Maximum number of wrong letters; names of different kinds may be similar."""
_CANDIDATES = 5


def unserved_error(error: KindNotServed, served: Sequence[Resource]) -> KindNotServed:
    """The same error, with its remedy."""
    remedy = unserved_remedy(error.api_version, error.kind, served)
    return KindNotServed(error.api_version, error.kind, remedy=remedy)


def unserved_remedy(api_version: str, kind: str, served: Sequence[Resource]) -> str:
    """Remedy for a kind that is not served.

    Args: served: kinds that the API server serves, as far as known; preferred versions come first.
    """
    group = group_of(api_version)
    same_group = [each for each in served if each.group == group]
    # A kind of the same name in another group is another kind, unless the group is misspelt, too. The kinds of
    # Kubernetes itself are well known.
    alike = difflib.get_close_matches(group, {each.group for each in served}, n=_CANDIDATES, cutoff=_ALIKE)
    like_group = [each for each in served if each.group in alike]
    built_in = [each for each in served if each.group in BUILT_IN_GROUPS]
    for candidates in (same_group, like_group, built_in):
        if (meant := _meant(kind, candidates)) is not None:
            version = f" of {meant.api_version}" if meant.api_version != api_version else ""
            return f"did you mean {meant.kind}{version}?"
    if group in BUILT_IN_GROUPS:
        return "this version of Kubernetes does not serve it; remove it, or use a served version of its API"
    return "install the CustomResourceDefinition of that kind; the agent notices it at once"


def _meant(kind: str, candidates: Iterable[Resource]) -> Resource | None:
    by_name: dict[str, Resource] = {}
    for each in candidates:
        for name in (each.kind.lower(), each.plural):
            by_name.setdefault(name, each)
    wanted = kind.lower()
    alike = difflib.get_close_matches(wanted, by_name, n=_CANDIDATES, cutoff=_ALIKE)
    return next((by_name[name] for name in alike if _edits(wanted, name) <= _EDITS), None)


def _edits(name: str, other: str) -> int:
    steps = difflib.SequenceMatcher(None, name, other).get_opcodes()
    return sum(
        max(end - start, other_end - other_start) for tag, start, end, other_start, other_end in steps if tag != "equal"
    )
