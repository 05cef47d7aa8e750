# kube-scheduler's own integration tests and its own benchmark, with `careen scheduler` in kube-scheduler's place. Both
# are built from the Go module k8s.io/kubernetes: ten minutes the first time, and 3 GB of memory.

PEERS ?=
PERF_NODES ?= 500
PERF_WORKLOADS ?=

.PHONY: test-scheduler-peers
test-scheduler-peers: $(INSTALLED) $(CONTROLPLANE) ## kube-scheduler's integration tests with careen scheduler, or PEERS=filters:TestInterPodAffinity; writes docs/scheduler-peers.md (needs Go)
	nice -n 15 $(PYTHON) -m tests.scheduler_peers .cache/scheduler-peers $(CONTROLPLANE) $(PEERS)

.PHONY: bench-scheduler-perf
bench-scheduler-perf: $(INSTALLED) $(CONTROLPLANE) ## scheduler_perf with careen scheduler and with kube-scheduler; PERF_NODES=5000 PERF_WORKLOADS=SchedulingBasic (needs Go)
	nice -n 15 $(PYTHON) -m tests.scheduler_peers.perf .cache/scheduler-peers $(CONTROLPLANE) $(PERF_NODES) $(PERF_WORKLOADS)
