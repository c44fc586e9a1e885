"""One descriptor per webhook, from which everything else derives: routes, webhook configurations, the combined webhook
of pods, metrics, the table in the documentation.

Each module of `webhooks.handlers` ends with the descriptor of its webhook, and `webhooks.registry` lists them. A
`MutatingWebhook` is made of a rule that changes an object in place, a `HandlerWebhook` answers requests itself, an
`AuthorizationWebhook` and a `ConversionWebhook` speak other protocols.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from process.configuration.fields import members
from webhooks.admission import Handler, Mutation
from webhooks.generic import defaulter
from webhooks.review import Endpoint, Reviewer
from webhooks.rules.registration import EVERYTHING, Call, Instance, Registration, Selector, where
from webhooks.state import SharedListers

if TYPE_CHECKING:
    from config.resource_manager.webhooks import Webhooks as ResourceManagerWebhooks
    from config.webhooks.schema import Webhooks as GardenWebhooks

    Section = ResourceManagerWebhooks | GardenWebhooks
    """Section `webhooks` of a configuration; each program imports only its own."""


class Settings(Protocol):
    @property
    def enabled(self) -> bool: ...


S = TypeVar("S", bound=Settings)

Selects = Selector | Callable[[Instance], Selector]
"""Label selector, which may depend on the instance."""

_NO_STATIC_PODS = where("static-pod", "NotIn", "true")
"""The mirror pod of a static pod must equal its manifest and cannot be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Call):
    """Requests that API servers send to a webhook."""

    name: str = ""
    """Name without the common domain; defaults to the name of the webhook."""
    namespaces: Selects = EVERYTHING
    objects: Selects = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(ABC, Generic[S]):
    name: str
    """Name in logs and spans, and with `_` for `-` the field of section `webhooks` in the configuration."""
    path: str
    """Path of its requests, also the label of its metrics."""
    settings: type[S]
    entries: tuple[Entry, ...] = ()
    validating: bool = False
    """Whether its entries belong in a ValidatingWebhookConfiguration."""
    public: bool = False
    """Whether every client is answered, even where clients need a certificate."""

    @abstractmethod
    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:
        """Return the endpoint that serves the path."""

    def key_in(self, webhooks: "Section") -> str:
        """Return the key of its settings in the configuration."""
        (name,) = (member.name for member in members(type(webhooks)) if member.attribute == self._field)
        return f"webhooks.{name}"

    @property
    def _field(self) -> str:
        return self.name.replace("-", "_")

    def settings_in(self, webhooks: "Section") -> S:
        found: S = getattr(webhooks, self._field)
        return found

    def registrations(self, instance: Instance) -> list[Registration]:
        return [self._registration(entry, instance) for entry in self.entries]

    def _registration(self, entry: Entry, instance: Instance) -> Registration:
        objects = _selector(entry.objects, instance)
        return Registration(
            name=entry.name or self.name,
            webhook=self.name,
            path=self.path,
            rules=entry.rules,
            namespaces=_selector(entry.namespaces, instance),
            objects=objects & _NO_STATIC_PODS if entry.is_for_pods else objects,
            failure_policy=entry.failure_policy,
            match_policy=entry.match_policy,
            timeout_seconds=entry.timeout_seconds,
            reinvocation_policy=entry.reinvocation_policy,
            only_for_group=entry.only_for_group,
            condition=entry.condition,
        )


def _selector(selects: Selects, instance: Instance) -> Selector:
    return selects if isinstance(selects, Selector) else selects(instance)


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatingWebhook(Webhook[S]):
    """Change objects in place. A webhook for pods is part of the combined webhook, too."""

    mutation: Callable[[S, SharedListers], Mutation]

    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:
        return Reviewer(self.name, defaulter(self.mutation(settings, state)), path=self.path)

    @property
    def is_for_pods(self) -> bool:
        return any(entry.is_for_pods for entry in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerWebhook(Webhook[S]):
    """Answer requests by itself."""

    handler: Callable[[S, SharedListers], Handler]

    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:
        return Reviewer(self.name, self.handler(settings, state), path=self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationWebhook(Webhook[S]):
    """Answer SubjectAccessReviews. API servers know it from a file of theirs, not from a webhook configuration."""

    authorizer: Callable[[S, SharedListers], Endpoint]

    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:
        return self.authorizer(settings, state)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionWebhook(Webhook[S]):
    """Answer ConversionReviews. API servers know it from the CustomResourceDefinition.

    They show no certificate to it; the answer depends on the request alone.
    """

    public: bool = True
    converter: Endpoint

    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:  # noqa: ARG002 - it needs neither
        return self.converter
