# What the forecast of one node costs in a small and in a large cluster; part of `make bench`.

FORECAST_FLAGS ?=

.PHONY: bench-forecast
bench-forecast: $(INSTALLED) cluster-programs ## the forecast of one node among 100 and 5,000: from files, and from a real API server
	$(PYTHON) -m bench.forecast $(FORECAST_FLAGS)
