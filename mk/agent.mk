# Figures of the resident agent: memory, requests when idle, seconds from the need to the taint.

IDLE_SECONDS ?= 600

.PHONY: bench-agent
bench-agent: $(INSTALLED) ## memory and requests of an idle agent; seconds from the need to the taint
	$(PYTHON) -m bench.agent --idle-seconds $(IDLE_SECONDS)
