"""The controller `node-high-availability-config`.

How strictly replicas are kept apart depends on whether there is more than one Node. The webhook of the same name
decides that when a workload is written; this controller has those workloads written again whose answer changed.
"""
