"""Compressed data of Secrets: as much as may be, and no more, or an error; and never other content than was packed.

The first byte states how much it may be.
"""

import brotli

from gardener.managed_resource.decode import decompress, unfolded_size
from kube.yaml import DialectError

_MOST = 1 << 20


def target(data: bytes) -> None:
    if not data:
        return
    limit, content = 1 << (data[0] % 24), data[1:]
    try:
        text = decompress(content, limit=limit)
    except DialectError:
        text = None
    assert unfolded_size([{"a.br": content}], limit=limit) <= limit
    if text is not None:
        assert len(text) <= limit
        assert text == brotli.decompress(content)
    if len(content) < _MOST:
        assert decompress(brotli.compress(content, quality=1), limit=_MOST) == content
