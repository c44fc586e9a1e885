"""Error of a configuration."""

from collections.abc import Iterable


class ConfigError(Exception):
    """The configuration is invalid; the text is for users.

    A single error is shown alone, several as `[first, second]`, each only once.
    """

    def __init__(self, errors: Iterable[object], *, stage: str = "") -> None:
        self.errors = tuple(dict.fromkeys(map(str, errors)))
        text = self.errors[0] if len(self.errors) == 1 else f"[{', '.join(self.errors)}]"
        super().__init__(f"{stage}: {text}" if stage else text)
