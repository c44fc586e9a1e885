"""Makes a release: `make release`, or with `DRY_RUN=1` all of it that needs neither a container engine nor a registry.

    python packages     wheel and source distribution, of what is committed
    plugin              an archive for krew, for the platform that this runs on, with krew's manifest
    bill of materials   of what is locked for the image, in CycloneDX
    image               built, pushed and signed by its digest
    manifests           the bases for kustomize as an OCI artifact, naming that image; pushed and signed, too
    checksums           of all files

`plan` says which commands there are, `bases` and `oci` pack, `__main__` does one after the other. Nothing here names a
registry: that is an option.
"""
