"""Certificates in fields of users, as PEM."""

from collections.abc import Iterator

from kube.validation import ErrorKind, FieldError
from kube.x509 import load_certificates


def bundle_errors(path: str, bundle: str) -> Iterator[FieldError]:
    """Errors of a bundle; none for an empty one. They omit the bundle: it is long, and may be a key by mistake."""
    if bundle and not load_certificates(bundle.encode()):
        yield FieldError(ErrorKind.INVALID, path, detail="must be certificates in PEM format, and nothing else")
