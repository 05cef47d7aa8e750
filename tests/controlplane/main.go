// Command controlplane is the control plane of Kubernetes in one binary, for tests on the real thing.
//
//	controlplane etcd|apiserver|kcm|scheduler [flags of that program]
//
// One binary because the four programs share most of their code: linked together they take one
// build and 125 MB instead of four and 330 MB.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	etcd "go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// plugins are our own plugins of the scheduler, for profiles that enable them; none does by itself.
// Other releases are built from this file alone and have none: the plugins' interface differs between releases.
var plugins []scheduler.Option

func main() {
	if len(os.Args) < 2 {
		fail("usage: controlplane etcd|apiserver|kcm|scheduler [flags]")
	}
	program := os.Args[1]
	// cobra keeps the slice it is given, so it gets a copy of its own: changing os.Args afterwards
	// would change the arguments under its hands.
	arguments := slices.Clone(os.Args[2:])
	switch program {
	case "etcd":
		etcd.Main(append([]string{"etcd"}, arguments...))
	case "apiserver":
		run(apiserver.NewAPIServerCommand(), arguments)
	case "kcm":
		run(controllers.NewControllerManagerCommand(), arguments)
	case "scheduler":
		run(scheduler.NewSchedulerCommand(plugins...), arguments)
	default:
		fail("controlplane: no program named " + program + ": etcd, apiserver, kcm or scheduler")
	}
}

func run(command *cobra.Command, arguments []string) {
	command.SetArgs(arguments)
	os.Exit(cli.Run(command))
}

func fail(sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(2)
}
