// The control plane of the devcluster in one binary: which component it is, is the name it is called by
// (kube-apiserver, kube-controller-manager, kube-scheduler or etcd, as links to one file). One binary links
// the shared nine tenths of the code once, which saves minutes of building and hundreds of megabytes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // time zones of CronJobs, also where the machine has no database of them

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	components := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "call this as etcd, kube-apiserver, kube-controller-manager or kube-scheduler, not as %q\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
