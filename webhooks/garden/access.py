"""Requests to the API server: rights of a user, absence, counts, and contents of Secrets and ConfigMaps.

Answers to SubjectAccessReviews are cached for a few seconds. All users share the connection and its request limit, so
the checks for one request, and the concurrent ones for one user, are bounded.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice

from kube.access_reviews import attributes, is_allowed, review
from kube.objects import Key, Object, key
from kube.resources import SUBJECT_ACCESS_REVIEWS, Resource
from kube.runtime.client import Client, Form, Selection
from kube.runtime.presence import present
from webhooks.admission import Errored, Refusal, User
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Content, Limit, Right
from webhooks.garden.lookups import Lookups, Missed

BELIEVED_SECONDS = 5.0
MOST_ANSWERS = 4096
MOST_RIGHTS = 150
"""Rights checked for one request; objects within the bounds of the schema need no more."""
MOST_MISSED = 32
"""Objects named by one request and missing in the caches that are read."""
MOST_AT_ONCE = 8
"""Pending requests about one user."""
MOST_WAITING = 300
"""Requests about one user that wait for pending ones."""

_Question = tuple[object, ...]


class _Asked:
    """Pending requests about one user."""

    def __init__(self) -> None:
        self.at_once = asyncio.Semaphore(MOST_AT_ONCE)
        self.count = 0


class Access:
    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._answers: dict[_Question, tuple[float, bool]] = {}
        """Expiry and answer."""
        self._users: dict[str, _Asked] = {}
        self._one_at_a_time = asyncio.Lock()
        """Lock for checks of contents."""

    async def missing(self, user: User, rights: Iterable[Right]) -> list[Right]:
        """Return the rights that the user lacks, in their order.

        Raises:
            Refusal: there are too many to check, or too many pending requests of the user.
        """
        rights = list(rights)
        distinct = {_question(user, right): right for right in rights}
        if len(distinct) > MOST_RIGHTS:
            raise Refusal(Errored(413, f"too many objects that you must be allowed to use: limit is {MOST_RIGHTS}"))
        answers = await asyncio.gather(*(self.allows(user, right) for right in distinct.values()))
        allowed = dict(zip(distinct, answers, strict=True))
        return [right for right in rights if not allowed[_question(user, right)]]

    async def allows(self, user: User, right: Right) -> bool:
        """Return whether the user has a right.

        Raises:
            Refusal: too many requests of the user are pending.
        """
        question = _question(user, right)
        until, allowed = self._answers.get(question, (0.0, False))
        if self._clock() < until:
            return allowed
        async with self._turn_of(user.name):
            allowed = is_allowed(await self._client.create(SUBJECT_ACCESS_REVIEWS, _review(user, right)))
        self._remember(question, allowed)
        return allowed

    async def finds(self, user: User, lookups: Lookups, missed: Iterable[Missed]) -> bool:
        """Read objects that are missing in the caches into these; return whether any exists.

        Raises:
            Refusal: too many requests of the user are pending.
        """

        async def is_there(resource: Resource, wanted: Key) -> bool:
            async with self._turn_of(user.name):
                return await present(self._client, lookups.store(resource), wanted) is not None

        return any(await asyncio.gather(*(is_there(*each) for each in islice(missed, MOST_MISSED))))

    @contextlib.asynccontextmanager
    async def _turn_of(self, user: str) -> AsyncIterator[None]:
        requested = self._users.setdefault(user, _Asked())
        if requested.count >= MOST_WAITING:
            raise Refusal(Errored(429, f"too many requests at a time that need rights: limit is {MOST_WAITING}"))
        requested.count += 1
        try:
            async with requested.at_once:
                yield
        finally:
            requested.count -= 1
            if not requested.count:
                self._users.pop(user, None)

    async def wrong(self, user: User, contents: Iterable[Content]) -> list[Finding]:
        """Return errors in the contents of objects that a request names.

        Raises:
            Refusal: too many requests of the user are pending.
        """
        found = list[Finding]()
        for content in contents:
            async with self._turn_of(user.name):
                obj = await self._client.find(content.resource, Key(content.namespace, content.name))
                async with self._one_at_a_time:
                    found += await asyncio.to_thread(content.check, obj)
        return found

    async def is_full(self, limit: Limit) -> bool:
        """Whether there are more objects than the limit."""
        if limit.most < 0:
            return True
        counted, enough = 0, limit.most + 1
        for selector in limit.field_selectors:
            selection = Selection(field_selector=selector)
            # One more, since the object itself may be among them.
            async for page in self._client.pages(limit.resource, selection, form=Form.METADATA, limit=enough + 1):
                counted += sum(key(each) != limit.own for each in page)
                if counted >= enough:
                    return True
        return False

    def _remember(self, question: _Question, allowed: bool) -> None:
        now = self._clock()
        if len(self._answers) >= MOST_ANSWERS:
            self._answers = {requested: answer for requested, answer in self._answers.items() if answer[0] > now}
        if len(self._answers) >= MOST_ANSWERS:
            self._answers.clear()
        self._answers[question] = (now + BELIEVED_SECONDS, allowed)


def _question(user: User, right: Right) -> _Question:
    who = (user.name, user.groups, user.uid, tuple(sorted(user.extra.items())))
    return (*who, right.verb, right.resource, right.subresource, right.namespace, right.name)


def _review(user: User, right: Right) -> Object:
    requested = attributes(
        right.verb, right.resource, subresource=right.subresource, namespace=right.namespace, name=right.name
    )
    requested["version"] = right.resource.version
    return review(requested, user=user.name, groups=user.groups, uid=user.uid, extra=user.extra)
