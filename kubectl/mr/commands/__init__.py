"""A module per command, imported when the command is used; each has a function `command`."""
