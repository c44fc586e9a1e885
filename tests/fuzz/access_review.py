"""Questions of API servers to the authorizer of node agents, and the OperatingSystemConfigs that answers depend on.

Even bytes at the start: the rest is a SubjectAccessReview; odd ones: it is the content of a Secret, which the
owners of nodes can write.
"""

import base64
from collections.abc import Iterator

import orjson

from fuzz import driver
from webhooks.authorizers.review import Unreadable, decode
from webhooks.handlers.node_agent_authorizer.files import references


def seeds() -> Iterator[bytes]:
    yield from driver.millions(b'\2{"spec":{"groups":[', b'""]}}')


def target(data: bytes) -> None:
    if not data:
        return
    if data[0] % 2:
        _operating_system_config(data[1:])
    else:
        _review(driver.unfolded(data[1:]))


def _review(body: bytes) -> None:
    try:
        review = decode(body, "application/json")
    except Unreadable as error:
        assert 400 <= error.code < 500
        return
    requested = review.attributes
    assert all(
        isinstance(text, str)
        for text in (requested.user, requested.verb, requested.resource, requested.name, *requested.groups)
    )


def _operating_system_config(content: bytes) -> None:
    secret = {"metadata": {"namespace": "ns", "name": "osc"}, "data": {"osc.yaml": base64.b64encode(content).decode()}}
    try:
        found = references(secret)
    except ValueError as error:
        assert str(error) == 'osc.yaml of secret "ns/osc" is not an OperatingSystemConfig'
        return
    orjson.dumps([[one.secret, one.hostname] for one in found])
