"""Users who log in with a password, in the file format of web servers."""

import base64
import hashlib
import secrets
import string

PASSWORD_LENGTH = 32
_LETTERS = string.ascii_letters + string.digits
_SCHEME = "{SHA}"


def new_password() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(PASSWORD_LENGTH))


def line_of(user: str, password: str) -> str:
    """The line of a user, as by `htpasswd -s`: a password of 190 random bits needs no slow hash."""
    digest = base64.b64encode(hashlib.sha1(password.encode(), usedforsecurity=False).digest()).decode()
    return f"{user}:{_SCHEME}{digest}"


def lets_in(line: str, user: str, password: str) -> bool:
    """Whether the line may belong to this user; lines with hashes of other programs count as matching."""
    name, _, hashed = line.strip().partition(":")
    if name != user or not hashed:
        return False
    return line.strip() == line_of(user, password) if hashed.startswith(_SCHEME) else True
