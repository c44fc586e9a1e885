"""A Project has a namespace, a ResourceQuota in it, and its members have their rights; in the end all of it goes."""
