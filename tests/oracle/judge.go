package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/schedulinggates"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// Verdict is the status that a plugin returned.
type Verdict struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// Score is a node's total score, and the weighted score from each plugin.
type Score struct {
	Total   int64            `json:"total"`
	Plugins map[string]int64 `json:"plugins"`
}

// Nomination is a node, and the pods that the scheduler would delete from it. Pods that are already
// terminating are left out, because the scheduler sends no request for them.
type Nomination struct {
	Node    string   `json:"node"`
	Victims []string `json:"victims"`
}

// Answer is the result of one scheduling cycle for one pod.
type Answer struct {
	PreEnqueue  *Verdict           `json:"preenqueue,omitempty"`
	PreFilter   *Verdict           `json:"prefilter,omitempty"`
	Nodes       map[string]Verdict `json:"nodes,omitempty"`
	Scores      map[string]Score   `json:"scores,omitempty"`
	Best        []string           `json:"best,omitempty"`
	FitError    string             `json:"fit_error,omitempty"`
	Preemptions []Nomination       `json:"preemptions,omitempty"`
	Error       string             `json:"error,omitempty"`
}

func judgeCase(c *Case) (map[string]*Answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cl, err := readCluster(c)
	if err != nil {
		return nil, err
	}
	byName, first, err := newProfiles(ctx, cl, c.Config)
	if err != nil {
		return nil, err
	}
	answers := map[string]*Answer{}
	for _, key := range c.Pods {
		pod := cl.asked[key]
		if pod == nil {
			return nil, fmt.Errorf("pod %s is not among the objects", key)
		}
		p := first
		if named, ok := byName[pod.Spec.SchedulerName]; ok {
			p = named
		}
		answers[key] = p.judge(ctx, pod)
	}
	return answers, nil
}

func verdict(status *fwk.Status) Verdict {
	if status.IsSuccess() {
		return Verdict{Code: "Success"}
	}
	return Verdict{Code: status.Code().String(), Plugin: status.Plugin(), Reasons: status.Reasons()}
}

// judge does what schedulePod of pkg/scheduler/schedule_one.go does, except that it filters all nodes
// instead of a sample and does not try the nominated node first.
func (p *profile) judge(ctx context.Context, pod *v1.Pod) *Answer {
	for _, plugin := range p.PreEnqueuePlugins() {
		if plugin.Name() != schedulinggates.Name {
			continue // the PreFilter of each other plugin repeats the verdict of its PreEnqueue
		}
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			refused := verdict(status.WithPlugin(plugin.Name()))
			return &Answer{PreEnqueue: &refused}
		}
	}
	state := framework.NewCycleState()
	diagnosis := newDiagnosis()
	nodes, err := p.snapshot.NodeInfos().List()
	if err != nil {
		return &Answer{Error: err.Error()}
	}
	if len(nodes) == 0 {
		return &Answer{Error: "no nodes available to schedule pods"}
	}
	result, status, rejectors := p.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return &Answer{Error: status.Message()}
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		refused := verdict(status)
		return p.explain(ctx, state, pod, &diagnosis, &Answer{PreFilter: &refused})
	}
	answer := &Answer{Nodes: map[string]Verdict{}}
	outside := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(rejectors)))
	if !result.AllNodes() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(outside)
	}
	var feasible []fwk.NodeInfo
	for _, node := range nodes {
		name := node.Node().Name
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			answer.Nodes[name] = verdict(outside)
			continue
		}
		status := p.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		if status.Code() == fwk.Error {
			return &Answer{Error: status.Message()}
		}
		answer.Nodes[name] = verdict(status)
		if status.IsSuccess() {
			feasible = append(feasible, node)
		} else {
			diagnosis.NodeToStatus.Set(name, status)
		}
	}
	switch len(feasible) {
	case 0:
		return p.explain(ctx, state, pod, &diagnosis, answer)
	case 1:
		answer.Best = []string{feasible[0].Node().Name}
		return answer
	}
	return p.rank(ctx, state, pod, feasible, answer)
}

func (p *profile) rank(ctx context.Context, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, answer *Answer) *Answer {
	scores := make([]fwk.NodePluginScores, 0, len(feasible))
	if p.HasScorePlugins() {
		if status := p.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
			return &Answer{Error: status.Message()}
		}
		var status *fwk.Status
		if scores, status = p.RunScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
			return &Answer{Error: status.Message()}
		}
	} else {
		for _, node := range feasible { // prioritizeNodes of schedule_one.go does the same
			scores = append(scores, fwk.NodePluginScores{Name: node.Node().Name, TotalScore: 1})
		}
	}
	answer.Scores = map[string]Score{}
	highest := scores[0].TotalScore
	for _, node := range scores {
		plugins := map[string]int64{}
		for _, one := range node.Scores {
			plugins[one.Name] = one.Score
		}
		answer.Scores[node.Name] = Score{Total: node.TotalScore, Plugins: plugins}
		highest = max(highest, node.TotalScore)
	}
	for _, node := range scores {
		if node.TotalScore == highest {
			answer.Best = append(answer.Best, node.Name)
		}
	}
	sort.Strings(answer.Best)
	return answer
}

// explain runs the PostFilter plugins and adds the text of the pod's FailedScheduling event to the answer.
func (p *profile) explain(ctx context.Context, state fwk.CycleState, pod *v1.Pod, diagnosis *framework.Diagnosis, answer *Answer) *Answer {
	nodes, _ := p.snapshot.NodeInfos().List()
	nominated := false
	if p.HasPostFilterPlugins() {
		result, status := p.RunPostFilterPlugins(ctx, state, pod, diagnosis.NodeToStatus)
		diagnosis.PostFilterMsg = status.Message()
		nominated = status.IsSuccess() && result != nil && result.NominatingInfo != nil && result.NominatedNodeName != ""
	}
	fit := &framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: *diagnosis}
	answer.FitError = fit.Error()
	if nominated {
		options, err := p.preemptions(ctx, state, pod, diagnosis.NodeToStatus)
		if err != nil {
			return &Answer{Error: err.Error()}
		}
		answer.Preemptions = options
	}
	return answer
}

// preemptions lists every outcome that the scheduler's preemption may have. The scheduler starts its search at
// a random node and may stop early, so every start is tried. With more than a hundred candidates, one full
// search replaces them.
func (p *profile) preemptions(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses *framework.NodeToStatus) ([]Nomination, error) {
	evaluator := p.preemption.Evaluator
	candidates, err := statuses.NodesForStatusCode(p.snapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return nil, err
	}
	budgets, err := p.informers.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	if err != nil {
		return nil, err
	}
	count := int32(len(candidates))
	_, wanted := p.preemption.GetOffsetAndNumCandidates(count)
	starts := count
	if wanted >= count || count > 100 {
		starts, wanted = 1, count
	}
	found := map[string]Nomination{}
	for start := range starts {
		options, _, err := evaluator.DryRunPreemption(ctx, state, pod, candidates, budgets, start, wanted)
		if err != nil && len(options) == 0 {
			return nil, err
		}
		for _, choice := range equallyGood(ctx, evaluator, options) {
			one := nomination(choice)
			found[one.Node+" "+strings.Join(one.Victims, " ")] = one
		}
	}
	keys := sets.List(sets.KeySet(found))
	out := make([]Nomination, 0, len(keys))
	for _, key := range keys {
		out = append(out, found[key])
	}
	return out, nil
}

// equallyGood returns the options that tie with the best one. Between two equal options, SelectCandidate follows
// the random order of a map. So an option that it does not select in sixty calls is worse.
func equallyGood(ctx context.Context, evaluator *preemption.Evaluator, options []preemption.Candidate) []preemption.Candidate {
	if len(options) < 2 {
		return options
	}
	best := evaluator.SelectCandidate(ctx, options)
	var ties []preemption.Candidate
	for _, option := range options {
		for range 60 {
			if option.Name() == best.Name() || evaluator.SelectCandidate(ctx, []preemption.Candidate{best, option}).Name() == option.Name() {
				ties = append(ties, option)
				break
			}
		}
	}
	return ties
}

func nomination(choice preemption.Candidate) Nomination {
	victims := []string{}
	for _, pod := range choice.Victims().Pods {
		if pod.DeletionTimestamp == nil {
			victims = append(victims, pod.Namespace+"/"+pod.Name)
		}
	}
	sort.Strings(victims)
	return Nomination{Node: choice.Name(), Victims: victims}
}
