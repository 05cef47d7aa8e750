# The live page in a real browser: Debian's chromium, driven by playwright, checked with axe.

# Another browser: make test-browser CHROMIUM=/path/to/chrome.
CHROMIUM ?= $(shell command -v chromium || echo /usr/bin/chromium)
BROWSER := $(VENV)/.browser

.PHONY: test-browser
test-browser: $(BROWSER) $(CHROMIUM) ## the page of `careen serve` in Chromium: accessibility, phones, 5,000 nodes (root, Debian, or CHROMIUM=…)
	CHROMIUM=$(CHROMIUM) $(PYTHON) -m pytest -q -rP -p no:cacheprovider -m browser tests/browser $(TEST_FLAGS)

$(BROWSER): $(INSTALLED)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --constraint $(VENV)/locked.txt --group browser
	@touch $@

/usr/bin/chromium:
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core

pictures: live-pictures

.PHONY: live-pictures
live-pictures: $(BROWSER) $(CHROMIUM)
	CHROMIUM=$(CHROMIUM) $(PYTHON) -m docs.live_pictures
