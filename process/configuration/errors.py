"""The one error that a configuration can end in."""

from collections.abc import Iterable


class ConfigError(Exception):
    """The configuration cannot be used; the text is what a user is to read.

    One error stands alone, several as `[first, second]`, each only once.
    """

    def __init__(self, errors: Iterable[object], *, stage: str = "") -> None:
        self.errors = tuple(dict.fromkeys(map(str, errors)))
        text = self.errors[0] if len(self.errors) == 1 else f"[{', '.join(self.errors)}]"
        super().__init__(f"{stage}: {text}" if stage else text)
