"""Objects of Shoots in the seed become processes of this computer: a laptop's way of running pods.

An Etcd and the Deployments of a control plane are run from the manifests as they are: files of Secrets and ConfigMaps
lie below a directory that stands for the root of the container, and paths, ports and names of Services are replaced in
arguments and files. Deployments of other programs are reported as ready, since what they would do is not needed here.

volumes     which files a pod has
commands    how its program is called here: a line a program
addresses   Services and paths of pods, replaced by those of this computer
places      directories and ports, which outlive the process
processes   start, stop, and whether they run
probes      whether they are ready
deployments, etcds, services, namespaces   one pass over such an object

Processes are held by a supervisor of their own. So they outlive a crash of this program, which takes them up again, and
end with it when it stops, or when its parent does.
"""
