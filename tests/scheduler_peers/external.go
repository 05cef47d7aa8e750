package scheduler

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/featuregate"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/utils/clock"
)

// The environment:
//
//	EXTERNAL_SCHEDULER          the program and its first arguments; --config FILE --kubeconfig FILE are added
//	EXTERNAL_SCHEDULER_READY    what it prints when it schedules
//	EXTERNAL_SCHEDULER_LOGS     a directory for its output and its files
//	EXTERNAL_SCHEDULER_WITHOUT  Go plugins of the test that are left out
//	EXTERNAL_SCHEDULER_KUBE     the release whose defaults of feature gates the program has, such as 1.36
//
// Without the first one, kube-scheduler itself runs.
type external struct {
	options schedulerOptions
	started chan struct{}
	once    sync.Once
}

var externals atomic.Int64

func newExternal(options schedulerOptions) *external {
	return &external{options: options, started: make(chan struct{})}
}

// Impossible says why the program cannot stand in for this scheduler, or "".
func (sched *Scheduler) Impossible() string {
	if os.Getenv("EXTERNAL_SCHEDULER") == "" {
		return ""
	}
	options := &sched.external.options
	var plugins []string
	for name := range options.frameworkOutOfTreeRegistry {
		if !slices.Contains(without(), name) {
			plugins = append(plugins, name)
		}
	}
	slices.Sort(plugins)
	if len(plugins) > 0 {
		return "IMPOSSIBLE: plugins in Go: " + strings.Join(plugins, ", ")
	}
	if _, alpha := gates(); len(alpha) > 0 {
		return "IMPOSSIBLE: alpha feature gates: " + strings.Join(alpha, ", ")
	}
	if _, isReal := options.clock.(clock.RealClock); !isReal {
		return "IMPOSSIBLE: the test sets the scheduler's clock"
	}
	if options.podMaxInUnschedulablePodsDuration != defaultSchedulerOptions.podMaxInUnschedulablePodsDuration {
		return "IMPOSSIBLE: the test sets podMaxInUnschedulablePodsDuration"
	}
	return ""
}

// Run is what careen's make test-scheduler-peers replaces: the cache and the queue of this process are filled as ever,
// but a program schedules.
func (sched *Scheduler) Run(ctx context.Context) {
	command := strings.Fields(os.Getenv("EXTERNAL_SCHEDULER"))
	if len(command) == 0 {
		sched.runHere(ctx)
		return
	}
	goruntime.LockOSThread() // Pdeathsig is the thread's
	defer goruntime.UnlockOSThread()
	err := sched.external.run(ctx, command)
	sched.external.start()
	if err != nil && ctx.Err() == nil {
		fmt.Printf("EXTERNAL SCHEDULER failed: %v\n", err)
	}
	<-ctx.Done()
	sched.SchedulingQueue.Close()
}

// Started waits until the program has listed everything. It would otherwise find the test's first pods in its lists,
// which are sorted by name.
func (sched *Scheduler) Started() {
	if os.Getenv("EXTERNAL_SCHEDULER") == "" {
		return
	}
	select {
	case <-sched.external.started:
	case <-time.After(time.Minute):
	}
}

func without() []string { return strings.Fields(os.Getenv("EXTERNAL_SCHEDULER_WITHOUT")) }

func (e *external) start() { e.once.Do(func() { close(e.started) }) }

func (e *external) run(ctx context.Context, command []string) error {
	stem := filepath.Join(os.Getenv("EXTERNAL_SCHEDULER_LOGS"), fmt.Sprintf("%d-%d", os.Getpid(), externals.Add(1)))
	config, err := e.config()
	if err != nil {
		return err
	}
	kubeconfig, err := kubeconfigOf(e.options.kubeConfig)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"config.yaml": config, "kubeconfig.yaml": kubeconfig} {
		if err := os.WriteFile(stem+"."+name, content, 0o600); err != nil {
			return err
		}
	}
	log, err := os.Create(stem + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	changed, _ := gates()
	fmt.Printf("EXTERNAL SCHEDULER log=%s gates=%s\n", filepath.Base(log.Name()), strings.Join(changed, ","))
	program := exec.CommandContext(ctx, command[0], append(command[1:], "--config", stem+".config.yaml", "--kubeconfig", stem+".kubeconfig.yaml")...)
	program.Stdout = &watched{to: log, waits: []byte(os.Getenv("EXTERNAL_SCHEDULER_READY")), found: e.start}
	program.Stderr = log
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = program.Run()
	if program.ProcessState != nil {
		seconds := program.ProcessState.UserTime() + program.ProcessState.SystemTime()
		fmt.Printf("EXTERNAL SCHEDULER used seconds=%.2f\n", seconds.Seconds())
	}
	return err
}

func (e *external) config() ([]byte, error) {
	leave := without()
	profiles := make([]schedulerapi.KubeSchedulerProfile, len(e.options.profiles))
	for i := range e.options.profiles {
		e.options.profiles[i].DeepCopyInto(&profiles[i])
		plugins := profiles[i].Plugins
		if plugins == nil {
			continue
		}
		for _, set := range []*schedulerapi.PluginSet{&plugins.PreFilter, &plugins.Filter, &plugins.MultiPoint} {
			set.Enabled = slices.DeleteFunc(set.Enabled, func(p schedulerapi.Plugin) bool { return slices.Contains(leave, p.Name) })
		}
	}
	var written configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&written)
	var cfg schedulerapi.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&written, &cfg, nil); err != nil {
		return nil, err
	}
	cfg.LeaderElection.LeaderElect = false
	cfg.EnableProfiling, cfg.EnableContentionProfiling = false, false
	cfg.ClientConnection.ContentType = "application/json"
	cfg.ClientConnection.AcceptContentTypes = ""
	cfg.ClientConnection.QPS, cfg.ClientConnection.Burst = 5000, 5000
	cfg.Parallelism = e.options.parallelism
	percentage := e.options.percentageOfNodesToScore
	cfg.PercentageOfNodesToScore = &percentage
	cfg.PodInitialBackoffSeconds = e.options.podInitialBackoffSeconds
	cfg.PodMaxBackoffSeconds = e.options.podMaxBackoffSeconds
	cfg.Profiles = profiles
	cfg.Extenders = e.options.extenders
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	return runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion), &cfg)
}

func kubeconfigOf(c *restclient.Config) ([]byte, error) {
	if c == nil {
		return nil, fmt.Errorf("the test gives the scheduler no kubeconfig")
	}
	host, _, err := restclient.DefaultServerUrlFor(c)
	if err != nil {
		return nil, err
	}
	c = restclient.CopyConfig(c)
	if err := restclient.LoadTLSFiles(c); err != nil {
		return nil, err
	}
	cluster := clientcmdapi.NewCluster()
	cluster.Server, cluster.TLSServerName = host.String(), c.ServerName
	cluster.CertificateAuthorityData, cluster.InsecureSkipTLSVerify = c.CAData, c.Insecure
	user := clientcmdapi.NewAuthInfo()
	user.Token, user.ClientCertificateData, user.ClientKeyData = c.BearerToken, c.CertData, c.KeyData
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo = "test", "test"
	config := clientcmdapi.NewConfig()
	config.Clusters["test"], config.AuthInfos["test"], config.Contexts["test"] = cluster, user, context
	config.CurrentContext = "test"
	return clientcmd.Write(*config)
}

// gates are those that are not as the release has them by default; alpha those of them that are alpha in it and on.
func gates() (all, alpha []string) {
	release := version.MustParse(os.Getenv("EXTERNAL_SCHEDULER_KUBE"))
	if now := utilfeature.DefaultMutableFeatureGate.EmulationVersion(); now.LessThan(release) {
		all = append(all, "emulated="+now.String())
	}
	for name, specs := range utilfeature.DefaultMutableFeatureGate.GetAllVersioned() {
		if !utilfeature.DefaultMutableFeatureGate.ExplicitlySet(name) {
			continue
		}
		var released featuregate.FeatureSpec
		for _, spec := range specs {
			if spec.Version == nil || !release.LessThan(spec.Version) {
				released = spec
			}
		}
		enabled := utilfeature.DefaultFeatureGate.Enabled(name)
		if enabled == released.Default {
			continue
		}
		all = append(all, fmt.Sprintf("%s=%t", name, enabled))
		if enabled && released.PreRelease == featuregate.Alpha {
			alpha = append(alpha, string(name))
		}
	}
	slices.Sort(all)
	slices.Sort(alpha)
	return all, alpha
}

type watched struct {
	to    io.Writer
	waits []byte
	seen  []byte
	found func()
}

func (w *watched) Write(p []byte) (int, error) {
	if w.found != nil {
		w.seen = append(w.seen, p...)
		if bytes.Contains(w.seen, w.waits) {
			w.found()
			w.found, w.seen = nil, nil
		}
	}
	return w.to.Write(p)
}
