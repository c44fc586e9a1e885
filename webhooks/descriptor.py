"""One descriptor a webhook, from which everything else derives: routes, webhook configurations, the combined webhook of
pods, metrics, the table in the documentation.

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
    """`webhooks` of a configuration; a program imports its own alone."""


class Settings(Protocol):
    @property
    def enabled(self) -> bool: ...


S = TypeVar("S", bound=Settings)

Selects = Selector | Callable[[Instance], Selector]
"""A label selector, which may depend on whose webhook it is."""

_NO_STATIC_PODS = where("static-pod", "NotIn", "true")
"""The mirror pod of a static pod has to be as its manifest and cannot be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Call):
    """What API servers ask a webhook about."""

    name: str = ""
    """Without the domain that all names end in; empty: the name of the webhook."""
    namespaces: Selects = EVERYTHING
    objects: Selects = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(ABC, Generic[S]):
    name: str
    """In logs and spans; `-` as `_`, it is the field of the configuration's section `webhooks`."""
    path: str
    """At which it is asked, and the label of its metrics."""
    settings: type[S]
    entries: tuple[Entry, ...] = ()
    validating: bool = False
    """Whether its entries belong into a ValidatingWebhookConfiguration."""
    public: bool = False
    """Whether everybody is answered, also where clients have to show a certificate."""

    @abstractmethod
    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:
        """What answers at the path."""

    def key_in(self, webhooks: "Section") -> str:
        """The key of its settings in the configuration."""
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
    """Changes objects in place. One that is about pods is part of the combined webhook, too."""

    mutation: Callable[[S, SharedListers], Mutation]

    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:
        return Reviewer(self.name, defaulter(self.mutation(settings, state)), path=self.path)

    @property
    def is_for_pods(self) -> bool:
        return any(entry.is_for_pods for entry in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerWebhook(Webhook[S]):
    """Decides what to answer by itself."""

    handler: Callable[[S, SharedListers], Handler]

    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:
        return Reviewer(self.name, self.handler(settings, state), path=self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationWebhook(Webhook[S]):
    """Answers SubjectAccessReviews. API servers find it by a file of theirs, not by a webhook configuration."""

    authorizer: Callable[[S, SharedListers], Endpoint]

    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:
        return self.authorizer(settings, state)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionWebhook(Webhook[S]):
    """Answers ConversionReviews. API servers find it by the CustomResourceDefinition.

    They show no certificate to it; the answer follows from the question alone.
    """

    public: bool = True
    converter: Endpoint

    def endpoint(self, settings: S, state: SharedListers) -> Endpoint:  # noqa: ARG002 - it needs neither
        return self.converter
