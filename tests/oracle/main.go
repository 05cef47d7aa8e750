// Command oracle answers scheduling cases with the packages of the real kube-scheduler.
//
//	oracle judge [--lenient] < cases.jsonl > answers.jsonl   one answer line for each case line
//	oracle time PAGES PODS ROUNDS                            the processor time of a scheduling cycle, one line for each pod
//	oracle configurations < configurations > profiles        the effective profiles of each configuration
//	oracle quantities < strings > values                     the numbers that the API parses from each quantity
//
// A case that cannot be judged ends the run. With --lenient the run goes on, and the case has no answers;
// the search for the smallest case needs that.
//
// go.mod sets the version of Kubernetes. README.md describes the step to the next version.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

var lenient bool

func main() {
	quiet()
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: oracle judge|time|configurations|quantities"))
	}
	var err error
	switch os.Args[1] {
	case "judge":
		lenient = len(os.Args) > 2 && os.Args[2] == "--lenient"
		err = judgeAll(os.Stdin, os.Stdout, 3) // three, because a case mostly waits for its informers
	case "time":
		err = timePods(os.Args[2:], os.Stdout)
	case "configurations":
		err = readConfigurations(os.Stdin, os.Stdout)
	case "quantities":
		err = readQuantities(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("unknown command %q; choose judge, time, configurations or quantities", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

// quiet silences the scheduler's own log. It also turns off two feature gates, because with them the result of
// a cycle depends on earlier cycles or arrives later.
func quiet() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	metrics.Register()
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		"SchedulerAsyncPreemption": false, // the victims must be known when PostFilter returns
		"OpportunisticBatching":    false, // each cycle must start without the results of others
	}); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "oracle:", err)
	os.Exit(1)
}

// judgeAll judges several cases at once and writes the answers in the order of the cases.
func judgeAll(in io.Reader, out io.Writer, workers int) error {
	type job struct {
		line   []byte
		answer chan []byte
	}
	jobs, order := make(chan job), make(chan job, 4*workers)
	var running sync.WaitGroup
	for range workers {
		running.Add(1)
		go func() {
			defer running.Done()
			for j := range jobs {
				j.answer <- judgeLine(j.line)
			}
		}()
	}
	reading := make(chan error, 1)
	go func() {
		reader := bufio.NewReaderSize(in, 1<<20)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 1 {
				j := job{line, make(chan []byte, 1)}
				order <- j
				jobs <- j
			}
			if err != nil {
				close(jobs)
				close(order)
				if err == io.EOF {
					err = nil
				}
				reading <- err
				return
			}
		}
	}()
	writer := bufio.NewWriterSize(out, 1<<20)
	for j := range order {
		if _, err := writer.Write(append(<-j.answer, '\n')); err != nil {
			return err
		}
	}
	running.Wait()
	if err := <-reading; err != nil {
		return err
	}
	return writer.Flush()
}

func judgeLine(line []byte) []byte {
	var c Case
	if err := json.Unmarshal(line, &c); err != nil {
		fail(fmt.Errorf("case %.80s: %w", line, err))
	}
	answers, err := judgeCase(&c)
	if err != nil && lenient {
		answers, err = map[string]*Answer{}, nil
	}
	if err != nil {
		fail(fmt.Errorf("case %s: %w", c.ID, err))
	}
	encoded, err := json.Marshal(map[string]any{"id": c.ID, "answers": answers})
	if err != nil {
		fail(fmt.Errorf("case %s: %w", c.ID, err))
	}
	return encoded
}
