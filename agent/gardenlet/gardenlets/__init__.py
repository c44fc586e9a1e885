"""Gardenlets that this one installs, in clusters of Shoots and, anew, in its own: by a chart for Helm.

`chart` is the one of this release. The manifests are made of it, too.
"""
