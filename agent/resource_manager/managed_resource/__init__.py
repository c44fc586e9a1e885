"""The ManagedResource controller: applies, keeps and removes the objects that ManagedResources describe.

One pass reads Secrets (`decode`), compares with previously managed objects (`inventory`), removes obsolete ones
(`removal`), and applies the rest in order (`order`), each object merged with its live state (`merge`) and written only
if something changes (`difference`). These modules are rules without I/O.
"""
