"""Charts of extensions: fetched from a registry, and rendered by the program `helm`."""
