"""What a ManagedResource asks for and how its objects come to be so: the rules, without a client.

From the data of Secrets to manifests (`decode`), in which order they are applied (`order`), from manifest and live
object to the body of a request (`merge`), whether a live object is as it was applied (`difference`), what was managed
so far against what is wanted now (`inventory`), and what the status says (`conditions`).
"""
