"""The program `etcdutl`, which makes a data directory of etcd from a snapshot: built once with Go.

`etcdutl/` is a Go module of its own, so that the control plane is not rebuilt for it.
"""

from pathlib import Path

from localprocesses.go_program import GoProgram

ETCDUTL = GoProgram(
    name="etcdutl",
    module=Path(__file__).with_name("etcdutl"),
    sources=("go.mod", "go.sum", "main.go"),
    package=".",
    flags=("-trimpath", "-ldflags=-s -w"),
    minutes="a minute",
)
