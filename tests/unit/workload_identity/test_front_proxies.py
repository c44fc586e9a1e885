"""Whom the API server reports it is passing a request on for."""

import pytest

from webhooks.admission import User
from webhooks.tokens.front_proxies import Published, parse, user_of

DATA = {
    "requestheader-client-ca-file": "PEM",
    "requestheader-allowed-names": '["front-proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
PUBLISHED = parse(DATA)


def test_what_is_published_is_read() -> None:
    assert PUBLISHED.authorities == b"PEM"
    assert PUBLISHED.user == ("X-Remote-User",)
    assert PUBLISHED.groups == ("X-Remote-Group",)
    assert PUBLISHED.extra == ("X-Remote-Extra-",)


@pytest.mark.parametrize(
    "data", [{}, {"requestheader-username-headers": "nonsense ["}, {"requestheader-allowed-names": "{}"}]
)
def test_what_is_not_published_names_no_one(data: dict[str, object]) -> None:
    assert parse(data).authorities == b""
    assert user_of([("X-Remote-User", "jane")], parse(data)) is None


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ([], None),
        ([("X-Remote-Group", "g")], None),
        ([("X-Remote-User", "")], None),
        ([("x-remote-user", "jane")], User("jane")),
        ([("X-Remote-User", "jane"), ("X-Remote-User", "root")], User("jane")),
        (
            [("X-Remote-User", "jane"), ("X-Remote-Group", "a"), ("X-Remote-Group", "b"), ("X-Remote-Uid", "7")],
            User("jane", ("a", "b"), "7"),
        ),
        (
            [("X-Remote-User", "jane"), ("X-Remote-Extra-Scopes", "a"), ("X-Remote-Extra-Scopes", "b")],
            User("jane", extra={"scopes": ("a", "b")}),
        ),
        ([("X-Remote-User", "jane"), ("Impersonate-User", "root")], User("jane")),
    ],
)
def test_headers_name_a_user(headers: list[tuple[str, str]], user: User | None) -> None:
    assert user_of(headers, PUBLISHED) == user


def test_other_headers_are_used_if_the_api_server_reports_so() -> None:
    published = Published(user=("X-Who", "X-Remote-User"))
    assert user_of([("X-Remote-User", "b")], published) == User("b")
    assert user_of([("X-Remote-User", "b"), ("X-Who", "a")], published) == User("a")
