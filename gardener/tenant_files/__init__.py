"""Files that tenants supply for the API server of a Shoot.

An API server trusts its files: a kubeconfig in one can run a command, and a path in one can name any file of the host.
So the text of a tenant never reaches an API server. It is parsed within limits into a model that has only allowed
fields, and a new file is written from the model; anything else is an error. No model has a command, a plugin for
credentials or the name of a file: paths are those that the gardenlet chooses.

reading          text -> model within limits, and errors that do not quote the text
kubeconfigs      of admission plugins that call a webhook
admission        configurations of admission plugins
audit            audit policy
authentication   structured authentication
references       objects of a Shoot's namespace that hold such files, with their keys
mounted          the same checks for the files of a kube-apiserver, when it starts
"""

from gardener.tenant_files.reading import UnusableFile

__all__ = ["UnusableFile"]
