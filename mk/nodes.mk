# Real nodes: three machines in systemd-nspawn, each with systemd, containerd and kubelet, joined to the real control plane. Nothing of
# the computer is changed but its Debian packages; everything else lies in .cache/nodes. See tests/nodes/README.md.

NODES_CACHE := .cache/nodes
CONTAINERD_RELEASE := $(shell sed -nE 's/^\tgithub.com.containerd.containerd.v2 (v[0-9.]+).*/\1/p' tests/nodes/runtime/go.mod)
# What is not set on the command line or in the environment comes from mk/cluster.mk and is meant for test-cluster.
NODES_STORIES := $(if $(filter all,$(STORIES)),tests/nodes,$(if $(filter file,$(origin STORIES)),tests/nodes/test_every_change.py,$(STORIES)))

.PHONY: test-nodes
test-nodes: $(INSTALLED) ## the image and the manifests on real kubelets, with real reboots; STORIES=all for every story (root, Debian)
	@tests/nodes/run-stories $(VENV) $(NODES_STORIES)

.PHONY: bench-nodes
bench-nodes: $(INSTALLED) ## on real nodes: seconds from touch to hand-back, the idle agent's memory and CPU, image size (root, Debian)
	@tests/nodes/run-stories $(VENV) tests/nodes/figures.py

.PHONY: nodes-programs
nodes-programs: $(NODES_CACHE)/store $(NODES_CACHE)/machine/etc/os-release $(NODES_CACHE)/bin/kubelet $(CONTROLPLANE)
	@command -v kubectl > /dev/null || $(MAKE) --no-print-directory .cache/bin/kubectl

# In the control plane's own module: with the same -trimpath most of its packages are in the build cache already.
KUBERNETES_VERSION_FLAGS = -s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_RELEASE) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(KUBERNETES_RELEASE:v%=%))) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES_RELEASE)))
GO_BUILD = PATH="$(CURDIR)/$(VENV)/bin:$$PATH" nice go build -p 2 -trimpath

# After the control plane, so that no package is compiled twice.
$(NODES_CACHE)/bin/kubelet: tests/controlplane/go.mod | $(CONTROLPLANE)
	cd tests/controlplane && $(GO_BUILD) -o ../../$@ -ldflags "$(KUBERNETES_VERSION_FLAGS)" k8s.io/kubernetes/cmd/kubelet

.cache/bin/kubectl: tests/controlplane/go.mod | $(CONTROLPLANE)
	cd tests/controlplane && $(GO_BUILD) -o ../../$@ -ldflags "$(KUBERNETES_VERSION_FLAGS)" k8s.io/kubernetes/cmd/kubectl

# A module of its own: its dependencies are newer than the kubelet's.
$(NODES_CACHE)/bin/containerd: tests/nodes/runtime/go.mod | $(INSTALLED)
	@tests/cluster/install-programs $(VENV) go
	@mkdir -p $(@D)
	cd tests/nodes/runtime && $(GO_BUILD) -o ../../../$(@D)/ -tags no_btrfs,no_devmapper,no_zfs,no_tracing,no_aufs \
		-ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$(CONTAINERD_RELEASE)" tool

$(NODES_CACHE)/images/pause: tests/nodes/images/pause/main.go | $(INSTALLED)
	@tests/cluster/install-programs $(VENV) go
	@mkdir -p $(@D)
	cd tests/nodes/images/pause && CGO_ENABLED=0 $(GO_BUILD) -o ../../../../$@ -ldflags "-s -w" .

$(NODES_CACHE)/machine/etc/os-release $(NODES_CACHE)/images/base.tar: | $(INSTALLED)
	@tests/nodes/make-root $(firstword $(subst /etc/os-release, ,$@))

# buildah's own cache says what of it has to be built again.
$(NODES_CACHE)/images/careen.tar: Dockerfile .dockerignore requirements.lock requirements-build.lock pyproject.toml README.md LICENSE \
		$(shell find operator scheduler_core -name '*.py') $(NODES_CACHE)/images/base.tar $(NODES_CACHE)/images/pause
	@tests/nodes/build-images $(@D)

$(NODES_CACHE)/store: $(NODES_CACHE)/images/careen.tar $(NODES_CACHE)/bin/containerd tests/nodes/fill-store
	@tests/nodes/fill-store $@ $(@D)/images/pause.tar $< example.com/app:1=localhost/careen/pause:1 careen.invalid/careen:0.2.0=careen.invalid/careen:0.1.0
	@touch $@
