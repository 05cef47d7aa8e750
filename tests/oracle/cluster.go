package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Case is one line of the input: a whole cluster, and the pods to judge. Each pod is judged alone.
type Case struct {
	ID      string            `json:"id"`
	Objects []json.RawMessage `json:"objects"`
	Pods    []string          `json:"pods"`
	Config  json.RawMessage   `json:"config,omitempty"`
}

// cluster contains the objects of a case, sorted by their role in the scheduler.
type cluster struct {
	nodes     []*v1.Node
	placed    []*v1.Pod          // pods on a node of the cluster
	asked     map[string]*v1.Pod // pods to judge, by namespace/name
	nominated []*v1.Pod          // pending pods that have a nominated node and are not to be judged
	others    []runtime.Object   // objects that plugins read through listers
}

// readCluster sorts the objects as the scheduler's event handlers do. It leaves out completed pods, and
// pods on nodes that the case does not have.
func readCluster(c *Case) (*cluster, error) {
	cl := &cluster{asked: map[string]*v1.Pod{}}
	wanted := map[string]bool{}
	for _, key := range c.Pods {
		wanted[key] = true
	}
	var pods []*v1.Pod
	known := map[string]bool{}
	decoder := scheme.Codecs.UniversalDeserializer()
	for _, raw := range c.Objects {
		obj, _, err := decoder.Decode(raw, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("object %.120s: %w", raw, err)
		}
		switch o := obj.(type) {
		case *v1.Node:
			cl.nodes = append(cl.nodes, o)
			known[o.Name] = true
		case *v1.Pod:
			pods = append(pods, o)
		default:
			cl.others = append(cl.others, obj)
		}
	}
	for _, pod := range pods {
		key := pod.Namespace + "/" + pod.Name
		switch {
		case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		case wanted[key]:
			cl.asked[key] = pod
		case pod.Spec.NodeName == "":
			if pod.Status.NominatedNodeName != "" {
				cl.nominated = append(cl.nominated, pod)
			}
		case known[pod.Spec.NodeName]:
			cl.placed = append(cl.placed, pod)
		}
	}
	return cl, nil
}

// snapshot adds the objects to the scheduler's own cache one by one, as a running scheduler does. So an image
// has the size that the first node with it reports, and the nodes have the order of the node tree.
func (cl *cluster) snapshot(ctx context.Context) (*cache.Snapshot, error) {
	logger := klog.FromContext(ctx)
	held, taken := cache.New(ctx, nil, false), cache.NewEmptySnapshot()
	for _, node := range cl.nodes {
		held.AddNode(logger, node)
	}
	for _, pod := range cl.placed {
		if err := held.AddPod(logger, pod); err != nil {
			return nil, err
		}
	}
	return taken, held.UpdateSnapshot(logger, taken)
}

func newDiagnosis() framework.Diagnosis {
	return framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
}
