"""How an error reads for people: on standard output, in log entries, in probe bodies."""


def error_text(error: BaseException) -> str:
    """One error as its own text, several as `[e1, e2]` without duplicates, as aggregates of Go read.

    An error without a text is called by its type, so that the answer is never empty.
    """
    texts = list(dict.fromkeys(_texts(error)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _texts(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [text for member in error.exceptions for text in _texts(member)]
    return [str(error) or type(error).__name__]
