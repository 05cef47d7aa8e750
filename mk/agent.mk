# Figures of the resident agent: memory, requests when idle, seconds from the need to the taint.

IDLE_SECONDS ?= 600

.PHONY: bench-agent
bench-agent: $(INSTALLED) ## memory and requests of an idle agent; seconds from the need to the taint
	$(PYTHON) -m bench.agent --idle-seconds $(IDLE_SECONDS)

.PHONY: bench-tricks
bench-tricks: $(INSTALLED) ## what each trick of the agent's imports saves, into bench/agent/tricks.md
	$(PYTHON) -m bench.agent.tricks
