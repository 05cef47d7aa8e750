// Command controlplane contains etcd and the control plane of Kubernetes in one binary. Tests run a real cluster with it.
//
//	controlplane etcd|apiserver|kcm|scheduler [flags of that program]
//
// The four programs share most of their code. One binary for all takes one build and 125 MB; four
// binaries would take four builds and 330 MB.
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

// plugins are this repository's own scheduler plugins. A plugin runs only in profiles that enable it. For other releases
// of Kubernetes this file is built alone, without plugins, because the plugins' interface differs between releases.
var plugins []scheduler.Option

func main() {
	if len(os.Args) < 2 {
		fail("usage: controlplane etcd|apiserver|kcm|scheduler [flags]")
	}
	program := os.Args[1]
	// cobra keeps this slice. It gets a copy, because a later change of os.Args would change its arguments.
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
		fail("controlplane: no program is named " + program + "; choose etcd, apiserver, kcm or scheduler")
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
