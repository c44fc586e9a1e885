"""The ManagedResource controller: applies, keeps and removes the objects that ManagedResources describe.

One pass reads Secrets (`decode`), compares with what was managed before (`inventory`), removes what is no longer
wanted (`removal`), and applies the rest in order (`order`), each object merged with its live state (`merge`) and
written only if something is to change (`difference`). These modules are rules without I/O.
"""
