# Every figure that the documentation states comes from one of these; `make bench` runs all of them.
# X_FLAGS='…' goes to the bench: `.venv/bin/python -m bench.X --help`, for example ACCURACY_FLAGS='--seeds 1 2 3 --drains 8'.

IDLE_SECONDS ?= 600
WITH_VENV := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"

bench-accuracy: $(INSTALLED) cluster-programs ## 30 drains forecast and then done, on a real control plane, landing by landing
	$(WITH_VENV) $(PYTHON) -m bench.accuracy $(ACCURACY_FLAGS) | tee bench/accuracy/results.md

bench-accuracy-sampled: $(INSTALLED) cluster-programs ## 60 drains in clusters of 200 and 300 nodes with the default scheduler, forecast and then done
	$(WITH_VENV) $(PYTHON) -m bench.accuracy.sampled $(SAMPLED_FLAGS) | tee bench/accuracy/sampled.md

bench-accuracy-learned: $(INSTALLED) cluster-programs ## 80 drains in clusters of 200 and 300 nodes, forecast with and without what their bindings taught
	$(WITH_VENV) $(PYTHON) -m bench.accuracy.learned $(LEARNED_FLAGS) | tee bench/accuracy/learned.md

bench-accuracy-searches: $(INSTALLED) ## what a forecast loses by following fewer searches, in clusters of 1,000 nodes and more
	$(PYTHON) -m bench.accuracy.few_searches

bench-accuracy-any-start: $(INSTALLED) ## the processor time by which counting every start makes a forecast longer
	$(PYTHON) -m bench.accuracy.any_start

# Needs folders of records: CYCLES_FLAGS='FOLDER FOLDER'.
bench-accuracy-cycles: $(INSTALLED) ## how recorded cycles deviate from computed ones, fitted to every second cluster and judged by the others
	$(PYTHON) -m bench.accuracy.cycles $(CYCLES_FLAGS) | tee bench/accuracy/cycles.md

bench-agent: $(INSTALLED) ## memory and requests of an idle agent; seconds from the need to the taint
	$(PYTHON) -m bench.agent --idle-seconds $(IDLE_SECONDS)

bench-changes: $(INSTALLED) ## a thousand changes between agent and sleeper with a tenth of a core, probed all the time
	$(PYTHON) -m bench.agent.changes $(CHANGES_FLAGS)

bench-limit: $(INSTALLED) ## which memory limit an awake agent and its forecast child need with 100 nodes (root)
	$(PYTHON) -m bench.agent.limit

bench-running: $(INSTALLED) ## the scheduling machine without HTTP: processor time a pod by part, memory, a relist's longest pause
	nice $(PYTHON) -m bench.running $(RUNNING_FLAGS) | tee bench/running/results.md

bench-cache: $(INSTALLED) ## 5,000 nodes and 150,000 pods in memory: events per second, MiB, over 1,000,000 events
	nice $(PYTHON) -m bench.cache $(CACHE_FLAGS) | tee bench/cache/results.md

bench-formats: $(INSTALLED) ## a pod read as JSON and as protobuf: bytes, microseconds
	$(PYTHON) -m pip install --quiet --upgrade --target .cache/protobuf protobuf
	PYTHONPATH=.cache/protobuf nice $(PYTHON) -m bench.cache.formats | tee bench/cache/formats.md

bench-rollout: $(INSTALLED) cluster-programs ## a roll-out over 12 nodes, measured, for any AGENT='command' or KURED_BIN=file
	$(PYTHON) -m bench.rollout $(if $(AGENT),--agent '$(AGENT)') $(if $(KURED_BIN),--kured '$(KURED_BIN)') $(ROLLOUT_FLAGS)

bench-moves: $(INSTALLED) ## simulated: how many pods move twice, by order and number of nodes at once
	nice $(PYTHON) -m bench.moves $(MOVES_FLAGS) | tee bench/moves/results.md

bench-planner: $(INSTALLED) ## the new nodes that 60 generated clusters need: the planner and cluster-autoscaler's rule
	nice $(PYTHON) -m bench.planner $(PLANNER_FLAGS) | tee bench/planner/results.md

bench-moved: $(INSTALLED) cluster-programs ## how often pods move, with and without the early taint, and with the kured of KURED_BIN=file
	$(PYTHON) -m bench.rollout.moved $(if $(KURED_BIN),--kured '$(KURED_BIN)') $(MOVED_FLAGS)

bench-commands: $(INSTALLED) ## processor time of status, why, lock and hold
	$(PYTHON) -m bench.commands

bench-minutes: $(INSTALLED) ## the stories of docs/operations.md in a fleet of 200 nodes: what the commands print, and in how many seconds
	nice $(PYTHON) -m bench.first_minutes $(MINUTES_FLAGS)

bench-forecast: $(INSTALLED) cluster-programs ## the forecast of one node among 100 and 5,000: from files, and from a real API server
	$(PYTHON) -m bench.forecast $(FORECAST_FLAGS)

bench-nodes: $(INSTALLED) ## on real nodes: seconds from the need of a reboot to the release of the claim, the idle agent's memory and CPU, image size (root, Debian)
	@tests/nodes/run-stories $(VENV) tests/nodes/figures.py
	@$(MAKE) --no-print-directory image-size BASE=debian

bench-scheduler: $(INSTALLED) oracle ## the real scheduler and scheduler_core side by side (needs Go)
	$(PYTHON) -m bench.scheduler.run --oracle $(ORACLE)

bench-scheduler-live: $(INSTALLED) cluster-programs ## careen scheduler beside kube-scheduler on one real API server: landings, processor time, pods a second, latency
	$(WITH_VENV) nice $(PYTHON) -m bench.scheduler_live $(SCHEDULER_LIVE_FLAGS) | tee bench/scheduler_live/results.md

bench-plan: $(INSTALLED) ## the plan of a roll-out over 200 nodes in every order and over 5,000, and a forecast from a dump; writes results.md
	$(PYTHON) -m bench.plan

bench-shadow: $(INSTALLED) ## memory, processor time and API load of `careen shadow` with 100, 1,000 and 5,000 nodes
	nice $(PYTHON) -m bench.shadow $(SHADOW_FLAGS) | tee bench/shadow/results.md

.PHONY: wide
wide: $(INSTALLED) ## 500 agents through a wait and a roll-out on virtual time: memory, requests in each part
	$(PYTHON) -m bench.wide $(WIDE_FLAGS)

BENCHES := $(shell sed -nE 's/^(bench-[a-z-]+):.*/\1/p' mk/bench.mk | sort)
.PHONY: bench $(BENCHES)
bench: $(BENCHES) ## measures every figure that the documentation states
