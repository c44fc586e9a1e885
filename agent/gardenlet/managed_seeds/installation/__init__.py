"""Gardenlets that this one installs with a Helm chart, in clusters of Shoots and in its own.

`chart` is the one of this release. The manifests are generated from it, too.
"""
