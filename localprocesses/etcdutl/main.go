// The part of etcdutl that deals with snapshots.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

func main() {
	root := &cobra.Command{Use: "etcdutl", SilenceUsage: true}
	root.AddCommand(etcdutl.NewSnapshotCommand())
	if root.Execute() != nil {
		os.Exit(1)
	}
}
