"""Rules for a ManagedResource and its objects, without a client.

Decoding of Secrets to manifests (`decode`), the order in which they are applied (`order`), the body of a request from
manifest and live object (`merge`), texts about differences (`changes`), comparison of managed and wanted objects
(`inventory`), and the status (`conditions`).
"""
