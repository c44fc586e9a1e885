"""Charts of extensions: pulled from a registry, and rendered by the program `helm`."""
