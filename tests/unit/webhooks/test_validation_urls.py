"""URLs are read as package net/url of Go reads them."""

import pytest

from webhooks.handlers.extension_validation.rules.urls import parse_url


@pytest.mark.parametrize(
    ("text", "scheme", "host"),
    [
        ("", "", ""),
        ("https://a.b:1/c?d#e", "https", "a.b:1"),
        ("HTTPS://A.b", "https", "A.b"),
        ("a.b", "", ""),
        ("/a:b", "", ""),
        ("a/b:c", "", ""),
        ("//a", "", "a"),
        ("///a", "", ""),
        ("x:///a", "x", ""),
        ("mailto:a@b", "mailto", ""),
        ("a.b:5000", "a.b", ""),
        ("http://user:word@a:1", "http", "a:1"),
        ("http://a:", "http", "a:"),
        ("http://[::1]:80", "http", "[::1]:80"),
        ("http://a?b", "http", "a"),
        ("http://é", "http", "é"),
        ("http://a/%41", "http", "a"),
    ],
)
def test_schemes_and_hosts(text: str, scheme: str, host: str) -> None:
    assert parse_url(text) == (scheme, host)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("://a", 'parse "://a": missing protocol scheme'),
        ("1http://a", 'parse "1http://a": first path segment in URL cannot contain colon'),
        ("1:a", 'parse "1:a": first path segment in URL cannot contain colon'),
        ("http://a b", 'parse "http://a b": invalid character " " in host name'),
        ("http://a:b", 'parse "http://a:b": invalid port ":b" after host'),
        ("http://a:1:2b", 'parse "http://a:1:2b": invalid port ":2b" after host'),
        ("http://[::1", "parse \"http://[::1\": missing ']' in host"),
        ("http://[::1]a", 'parse "http://[::1]a": invalid port "a" after host'),
        ("http://a%41", 'parse "http://a%41": invalid URL escape "%41"'),
        ("http://a/%4", 'parse "http://a/%4": invalid URL escape "%4"'),
        ("http://a/%zz/", 'parse "http://a/%zz/": invalid URL escape "%zz"'),
        ("http://a#%zz", 'parse "http://a#%zz": invalid URL escape "%zz"'),
        ("http://a b#c", 'parse "http://a b": invalid character " " in host name'),
        ("http://a\n", 'parse "http://a\\n": net/url: invalid control character in URL'),
        ("http://a[]@b", 'parse "http://a[]@b": net/url: invalid userinfo'),
    ],
)
def test_errors(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        parse_url(text)
    assert str(raised.value) == error
