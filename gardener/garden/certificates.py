"""Certificates that users write into fields, as PEM."""

from collections.abc import Iterator

from cryptography import x509

from kube.validation import ErrorKind, FieldError


def bundle_errors(path: str, bundle: str) -> Iterator[FieldError]:
    """Nothing about an empty one. The bundle itself is not shown: it is long, and may be a key by mistake."""
    if not bundle:
        return
    try:
        x509.load_pem_x509_certificates(bundle.encode())
    except ValueError:
        yield FieldError(ErrorKind.INVALID, path, detail="must be certificates in PEM format, and nothing else")
