package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"
)

// Lists describes a profile: the plugins of each extension point in the order in which they run, and the weights
// of the score plugins.
type Lists struct {
	Points  map[string][]string `json:"points"`
	Weights map[string]int32    `json:"weights"`
}

// readConfigurations reads one scheduler configuration from each line and prints one JSON object for it:
// {"profiles": {name: lists}}, or {"error": text} if the scheduler would not start with it.
func readConfigurations(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		answer := map[string]any{}
		if profiles, err := effective(lines.Bytes()); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["profiles"] = profiles
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func effective(raw json.RawMessage) (map[string]Lists, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg, err := readConfiguration(raw)
	if err != nil {
		return nil, err
	}
	h, err := newHandles(ctx, &cluster{}, cache.NewEmptySnapshot())
	if err != nil {
		return nil, err
	}
	recorder := func(string) events.EventRecorderLogger { return noEvents{} }
	built, err := schedulerprofile.NewMap(ctx, cfg.Profiles, plugins.NewInTreeRegistry(), recorder, h.options...)
	if err != nil {
		return nil, err
	}
	found := map[string]Lists{}
	for name, framework := range built {
		found[name] = listsOf(framework.ListPlugins())
	}
	return found, nil
}

func listsOf(all *config.Plugins) Lists {
	lists := Lists{Points: map[string][]string{}, Weights: map[string]int32{}}
	for point, set := range map[string]config.PluginSet{
		"preEnqueue": all.PreEnqueue, "queueSort": all.QueueSort, "preFilter": all.PreFilter, "filter": all.Filter,
		"postFilter": all.PostFilter, "preScore": all.PreScore, "score": all.Score, "reserve": all.Reserve,
		"permit": all.Permit, "preBind": all.PreBind, "bind": all.Bind, "postBind": all.PostBind,
	} {
		names := []string{}
		for _, plugin := range set.Enabled {
			names = append(names, plugin.Name)
			if point == "score" {
				lists.Weights[plugin.Name] = plugin.Weight
			}
		}
		lists.Points[point] = names
	}
	return lists
}
