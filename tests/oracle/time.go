package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"syscall"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// timePods measures scheduling cycles over all nodes on one core. It prints one line for each pod of the file:
// {"pod", "seconds": [the processor time of each round], "answer"}.
//
//	PAGES   a directory of JSON files; each has the body of one API list
//	PODS    a file with the pods to place, one JSON object on each line
//	ROUNDS  the number of cycles for each pod
func timePods(args []string, out io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: oracle time PAGES PODS ROUNDS")
	}
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	cl, err := readPages(args[0])
	if err != nil {
		return err
	}
	pods, err := readPods(args[1])
	if err != nil {
		return err
	}
	for _, pod := range pods {
		cl.asked[pod.Namespace+"/"+pod.Name] = pod
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, p, err := newProfiles(ctx, cl, nil)
	if err != nil {
		return err
	}
	seconds := make([][]float64, len(pods))
	for range rounds {
		for i, pod := range pods {
			start := processorSeconds()
			if err := p.cycle(ctx, pod); err != nil {
				return err
			}
			seconds[i] = append(seconds[i], processorSeconds()-start)
		}
	}
	encoder := json.NewEncoder(out)
	for i, pod := range pods {
		line := map[string]any{"pod": pod.Namespace + "/" + pod.Name, "seconds": seconds[i], "answer": p.judge(ctx, pod)}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// processorSeconds returns the processor time that this process has used, including its garbage collector. With one
// core and no other load, the same time passes on the clock.
func processorSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// cycle does what schedulePod does, with all nodes: it filters every node, scores every feasible node and finds the
// highest score. It returns only an error.
func (p *profile) cycle(ctx context.Context, pod *v1.Pod) error {
	state := framework.NewCycleState()
	nodes, err := p.snapshot.NodeInfos().List()
	if err != nil {
		return err
	}
	result, status, _ := p.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() || !result.AllNodes() {
		return fmt.Errorf("%s: PreFilter: %s", pod.Name, status.Message())
	}
	diagnosis := newDiagnosis()
	feasible := make([]fwk.NodeInfo, 0, len(nodes))
	for _, node := range nodes {
		if status := p.RunFilterPluginsWithNominatedPods(ctx, state, pod, node); status.IsSuccess() {
			feasible = append(feasible, node)
		} else {
			diagnosis.NodeToStatus.Set(node.Node().Name, status)
		}
	}
	if len(feasible) < 2 {
		return fmt.Errorf("%s: only %d feasible nodes, nothing to score", pod.Name, len(feasible))
	}
	if status := p.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return status.AsError()
	}
	scores, status := p.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	best := scores[0]
	for _, score := range scores {
		if score.TotalScore > best.TotalScore {
			best = score
		}
	}
	return nil
}

func readPages(directory string) (*cluster, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no *.json files in %s (%v)", directory, err)
	}
	sort.Strings(files)
	cl := &cluster{asked: map[string]*v1.Pod{}}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		list, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		err = meta.EachListItem(list, func(object kruntime.Object) error {
			switch o := object.(type) {
			case *v1.Node:
				cl.nodes = append(cl.nodes, o)
			case *v1.Pod:
				o.ManagedFields = nil // the scheduler's informers drop them too
				cl.placed = append(cl.placed, o)
			default:
				cl.others = append(cl.others, object)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return cl, nil
}

func readPods(file string) ([]*v1.Pod, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var pods []*v1.Pod
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(lines.Bytes(), nil, nil)
		if err != nil {
			return nil, err
		}
		pods = append(pods, object.(*v1.Pod))
	}
	return pods, lines.Err()
}
