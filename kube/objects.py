"""Plain functions over Kubernetes objects, which are dicts as JSON gives them.

Read access never raises on a missing or null part: `labels({"metadata": {"labels": None}})` is an empty
mapping. Objects from caches are shared; nothing here changes its argument.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

Object = dict[str, Any]

_TRUTHY = frozenset({"1", "t", "T", "true", "TRUE", "True"})


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Namespace and name; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def metadata(obj: Mapping[str, Any]) -> Object:
    return obj.get("metadata") or {}


def key(obj: Mapping[str, Any]) -> Key:
    meta = metadata(obj)
    return Key(meta.get("namespace") or "", meta.get("name") or "")


def labels(obj: Mapping[str, Any]) -> dict[str, str]:
    return metadata(obj).get("labels") or {}


def annotations(obj: Mapping[str, Any]) -> dict[str, str]:
    return metadata(obj).get("annotations") or {}


def finalizers(obj: Mapping[str, Any]) -> list[str]:
    return metadata(obj).get("finalizers") or []


def uid(obj: Mapping[str, Any]) -> str:
    return metadata(obj).get("uid") or ""


def resource_version(obj: Mapping[str, Any]) -> int:
    """The resourceVersion as a number, 0 if absent; newer objects have greater ones."""
    return int(metadata(obj).get("resourceVersion") or 0)


def is_deleting(obj: Mapping[str, Any]) -> bool:
    return bool(metadata(obj).get("deletionTimestamp"))


def group_of(api_version: str) -> str:
    """The group of an apiVersion; the core group is the empty string."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def condition(obj: Mapping[str, Any], condition_type: str) -> Object | None:
    found: list[Object] = (obj.get("status") or {}).get("conditions") or []
    return next((c for c in found if c.get("type") == condition_type), None)


def is_truthy(value: str | None) -> bool:
    """What Go's strconv.ParseBool takes for true; everything else, also None, is false."""
    return value in _TRUTHY


def pointer_step(name: str) -> str:
    """A field's name as a step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


# --- times and durations

_DURATION_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([^0-9.]*)")
_UNIT_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


def parse_duration(text: str) -> float:
    """Seconds of a Go duration such as `1h30m`, `-1.5h`, `300ms`, `0`.

    Raises:
        ValueError: with the message of Go's time.ParseDuration.
    """
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return 0.0
    if not rest:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    total, at = Decimal(0), 0
    while at < len(rest):
        part = _DURATION_PART.match(rest, at)
        if part is None:
            raise ValueError(f"time: invalid duration {_quoted(text)}")
        number, unit = part.groups()
        if not unit:
            raise ValueError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in _UNIT_NANOSECONDS:
            raise ValueError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        total += Decimal(number) * _UNIT_NANOSECONDS[unit]
        at = part.end()
    if total >= 2**63 + (sign == "-"):
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    return float(total / 10**9) * (-1 if sign == "-" else 1)


def _quoted(text: str) -> str:
    """As package time of Go quotes: whatever is not plain ASCII as the hexadecimal digits of its bytes."""
    plain = (chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}" for byte in text.encode())
    return '"' + "".join(f"\\{char}" if char in '"\\' else char for char in plain) + '"'


def format_duration(seconds: float) -> str:
    """As Go prints a duration: `1m0s`, `1h0m0s`, `1.5s`, `250ms`, `0s`."""
    nanoseconds = round(abs(seconds) * 1e9)
    sign = "-" if seconds < 0 and nanoseconds else ""
    if nanoseconds == 0:
        return "0s"
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if nanoseconds < size * 1000 and nanoseconds < 10**9:
            return f"{sign}{_trim(Decimal(nanoseconds) / size)}{unit}"
    minutes, rest = divmod(nanoseconds, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_trim(Decimal(rest) / 10**9)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _trim(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_time(text: str) -> datetime:
    """An RFC 3339 time, as the API server writes it. Raises ValueError."""
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC, to the second, as metav1.Time is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> str:
    """RFC 3339 in UTC, to the microsecond, as metav1.MicroTime is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# --- quantities

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?)", re.ASCII)
_SUFFIX = {
    **{
        suffix: Decimal(10) ** exponent
        for suffix, exponent in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{suffix: Decimal(1024) ** (i + 1) for i, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
}


def parse_quantity(value: str | float) -> Decimal:
    """The value of a resource quantity such as `100m`, `1Gi`, `1e3`. Raises ValueError."""
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{value!r} is not a quantity; write a number with an optional suffix such as m, k, Mi")
    number = Decimal(match[1])
    if match[2]:
        try:
            return number.scaleb(int(match[2][1:]))
        except ArithmeticError as error:
            raise ValueError(f"{value!r} is not a quantity; its exponent is out of bounds") from error
    return number * _SUFFIX.get(match[3] or "", Decimal(1))


# --- selectors


def matches_label_selector(selector: Mapping[str, Any] | None, having: Mapping[str, str]) -> bool:
    """Whether a metav1.LabelSelector selects these labels: None selects nothing, an empty one everything.

    Raises:
        ValueError: for an unknown operator.
    """
    if selector is None:
        return False
    if any(having.get(name) != value for name, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_matches_expression(expression, having) for expression in selector.get("matchExpressions") or [])


def _matches_expression(expression: Mapping[str, Any], having: Mapping[str, str]) -> bool:
    name, values = expression.get("key", ""), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return name in having and having[name] in values
        case "NotIn":
            return name not in having or having[name] not in values
        case "Exists":
            return name in having
        case "DoesNotExist":
            return name not in having
        case operator:
            raise ValueError(f'"{operator or ""}" is not a valid label selector operator')


def label_selector_text(match_labels: Mapping[str, str]) -> str:
    """The query parameter form of a map of labels, in a stable order."""
    return ",".join(f"{name}={value}" for name, value in sorted(match_labels.items()))


# --- owner references


def controller_of(obj: Mapping[str, Any]) -> Object | None:
    """The owner reference with `controller: true`, if there is one."""
    references: Sequence[Object] = metadata(obj).get("ownerReferences") or []
    return next((r for r in references if r.get("controller")), None)
