"""Makes a release of the committed files: `make release`. `make publish REGISTRY=...` makes it and publishes it.

    python packages     wheel and source distribution
    plugins             kubectl-mr, kubectl-gardener and kubectl-mss as single files with Python in them, and for krew
    image               as an archive in OCI's layout, if a base is given and there is a builder
    manifests           the directory for kustomize, packed
    chart               for Helm, written from the output of kustomize for the overlay `standalone`
    bill of materials   of the locked dependencies of image and wheel, in CycloneDX
    notes, checksums    of all of these

`plan` names the files and the commands of other programs; `bundle`, `chart`, `notes` and `oci` make content; `plugins`
packs with PyInstaller; `__main__` runs the steps. Nothing here names a registry: that is an option. The published files
are those in the directory, to the byte: the image is pushed from its archive.
"""
