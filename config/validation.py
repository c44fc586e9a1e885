"""All that is wrong with a configuration, at once: each field's own rules, then those between fields."""

from collections.abc import Callable, Iterator
from typing import Any

from config.checks import invalid_duration
from config.errors import ConfigError
from config.fields import is_block, join, members
from config.schema import LeaderElection, ResourceManagerConfiguration, Server
from config.schema_controllers import NodeAgentReconciliationDelay
from kube.validation import FieldError, forbidden, invalid

_JITTER_FACTOR = 1.2  # candidates wait up to this much longer than the retry period
_ALL_ADDRESSES = frozenset({"", "0.0.0.0", "::"})


def check(config: ResourceManagerConfiguration, *, conflicts: tuple[FieldError, ...] = ()) -> None:
    """Raise a ConfigError with all that is wrong, that which decoding found wrong with names included."""
    if errors := [*conflicts, *validate(config)]:
        raise ConfigError(errors)


def validate(config: ResourceManagerConfiguration) -> Iterator[FieldError]:
    yield from _block_errors(config, "", on=True)


def _block_errors(block: Any, path: str, *, on: bool) -> Iterator[FieldError]:
    on = on and getattr(block, "enabled", True)
    for member in members(type(block)):
        value, where = getattr(block, member.attribute), join(path, member.reported_as)
        if value is None:
            continue
        for rule in member.setting.checks:
            if on or rule.even_if_disabled:
                yield from rule.errors(where, value)
        if is_block(type(value)):
            yield from _block_errors(value, where, on=on)
    if on and type(block) in _BETWEEN_FIELDS:
        yield from _BETWEEN_FIELDS[type(block)](block, path)


def _lease_times(election: LeaderElection, path: str) -> Iterator[FieldError]:
    if election.lease_duration <= election.renew_deadline:
        detail = "must be greater than `RenewDeadline`"
        yield invalid_duration(f"{path}.leaseDuration", election.renew_deadline, detail)
    if election.renew_deadline <= _JITTER_FACTOR * election.retry_period:
        detail = f"renewDeadline must be greater than retryPeriod*JitterFactor ({_JITTER_FACTOR})"
        yield invalid_duration(f"{path}.renewDeadline", election.renew_deadline, detail)


def _distinct_ports(server: Server, path: str) -> Iterator[FieldError]:
    """No two servers on one port, unless they listen on different addresses or take any free port (0)."""
    earlier: list[tuple[str, int, str]] = []
    for member in members(Server):
        endpoint, where = getattr(server, member.attribute), f"{path}.{member.name}"
        for address, port, other in earlier:
            shared = endpoint.bind_address == address or _ALL_ADDRESSES & {endpoint.bind_address, address}
            if shared and endpoint.port == port > 0:
                yield invalid(f"{where}.port", port, f"must differ from {other}.port")
        earlier.append((endpoint.bind_address, endpoint.port, where))


def _delays(delay: NodeAgentReconciliationDelay, path: str) -> Iterator[FieldError]:
    if delay.min_delay > delay.max_delay:
        detail = "minimum delay must not be higher than maximum delay"
        yield invalid_duration(f"{path}.minDelay", delay.min_delay, detail)


def _token_invalidator(config: ResourceManagerConfiguration, _path: str) -> Iterator[FieldError]:
    if config.controllers.token_invalidator.enabled != config.webhooks.token_invalidator.enabled:
        detail = "controller and webhook for TokenInvalidator must either be both disabled or enabled"
        yield forbidden("controllers.tokenInvalidator", detail)


_BETWEEN_FIELDS: dict[type, Callable[[Any, str], Iterator[FieldError]]] = {
    LeaderElection: _lease_times,
    Server: _distinct_ports,
    NodeAgentReconciliationDelay: _delays,
    ResourceManagerConfiguration: _token_invalidator,
}
