"""Errors of API servers without quotations of objects.

An error ends up in conditions, Events and logs, which more users may read than Secrets. But API servers quote refused
objects: a whole pod template with its environment, for instance, and webhooks may show anything. So values of variables
and arguments of commands are cut out, and so is any content of the Secret. The rest is unchanged: it helps.
"""

import base64
import binascii
import re
from collections.abc import Iterator

from kube.objects import Object

_STRING = r'"(?:[^"\\]|\\.)*(?:"|\Z)|`[^`]*(?:`|\Z)'
_VALUE = re.compile(rf'(?P<field>\b[vV]alue"?:\s*)(?:{_STRING}|strings\.Join\(\{{.*?\}}, "[^"]*"\))(?!:)', re.DOTALL)
"""`"Value":"x"`, `Value:"x"`, and a difference of two; not `Invalid value: "x": …`, whose field explains it."""
_LIST = re.compile(
    rf'(?P<field>\b(?:[cC]ommand|[aA]rgs)"?:\s*(?:\[\]string)?)(?P<open>[\[{{])(?:[^\]}}"`]|{_STRING})++(?:[\]}}]|\Z)'
)
_LINES = re.compile(r'"""\n.*?"""', re.DOTALL)
_LINE = re.compile(rf"^(?P<mark>[-+ ][ \t]*)(?:{_STRING})(?=,?$)", re.MULTILINE)
"""Line of a list in a difference, which may not show the field of the list."""
_HIDDEN = "[redacted]"
_LONGEST = 32_768
"""Maximum characters; no more of a message is ever shown, and an attacker may send a long one to keep us busy."""
_MOST_COMPARED = 1 << 29
"""Characters of the message times the number of texts to search for: a fraction of a second."""
_TOO_LONG = f"{_HIDDEN}: the message is too long to find what it quotes of the Secret"
_SHORTEST = 6
"""Minimum characters of a text to search for; shorter ones would be found everywhere."""


def without_values(message: str) -> str:
    """Return the message without variables and arguments of containers, as printed in JSON or by Go."""
    message = message[:_LONGEST]
    if '"' not in message and "`" not in message:
        return message
    message = _LINES.sub(f'"{_HIDDEN}"', message)
    message = _LINE.sub(rf'\g<mark>"{_HIDDEN}"', message)
    message = _VALUE.sub(rf'\g<field>"{_HIDDEN}"', message)
    return _LIST.sub(lambda found: f"{found['field']}{found['open']}…{']' if found['open'] == '[' else '}'}", message)


def without_secrets(message: str, manifest: Object) -> str:
    """Return the message without the values of a Secret, in any quoted form."""
    if manifest.get("kind") != "Secret" or manifest.get("apiVersion") != "v1":
        return message
    texts = sorted({*_secrets(manifest)}, key=len, reverse=True)
    if len(texts) * len(message) > _MOST_COMPARED:
        return _TOO_LONG
    for text in texts:
        message = message.replace(text, _HIDDEN)
    return message


def _secrets(manifest: Object) -> Iterator[str]:
    for field in ("data", "stringData"):
        values = manifest.get(field)
        for value in values.values() if isinstance(values, dict) else ():
            text = str(value)
            forms = {text, base64.b64encode(text.encode(errors="replace")).decode(), _decoded(text)}
            # Each of several lines may be quoted separately.
            lines = {line.strip() for form in forms for line in form.splitlines()}
            yield from (form for form in forms | lines if len(form) >= _SHORTEST)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
