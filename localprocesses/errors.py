"""The one error of this package: its text is meant to be shown as it is."""


class LocalProcessError(Exception):
    """Something a person has to know about; the message names the cause and the remedy."""
