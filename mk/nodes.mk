# Real nodes: three machines in systemd-nspawn, each with systemd, containerd and kubelet, joined to the real control plane. Nothing of
# the computer is changed but its Debian packages; everything else lies in .cache/nodes. See tests/nodes/README.md.

NODES_CACHE := .cache/nodes
CONTAINERD_RELEASE := $(shell sed -nE 's/^\tgithub.com.containerd.containerd.v2 (v[0-9.]+).*/\1/p' tests/nodes/runtime/go.mod)
# What is not set on the command line or in the environment comes from mk/cluster.mk and is meant for test-cluster.
NODES_STORIES := $(if $(filter all,$(STORIES)),tests/nodes,$(if $(filter file,$(origin STORIES)),tests/nodes/test_every_change.py,$(STORIES)))

.PHONY: test-nodes
test-nodes: $(INSTALLED) ## the image and the manifests on real kubelets, with real reboots; STORIES=all for every story (root, Debian)
	@tests/nodes/run-stories $(VENV) $(NODES_STORIES)

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

$(NODES_CACHE)/machine/etc/os-release: | $(INSTALLED)
	@tests/nodes/make-root $(NODES_CACHE)/machine

# $(call archive,IMAGE): out of the store of mk/image/buildah, as a docker archive.
archive = rm -f $@ && mk/image/buildah push --quiet $(1) docker-archive:$@:$(1)

$(NODES_CACHE)/images/pause.tar: tests/nodes/images/pause.Dockerfile $(NODES_CACHE)/images/pause
	@mk/image/buildah build --quiet --isolation chroot --file $< --tag localhost/careen/pause:1 $(@D) > /dev/null
	@$(call archive,localhost/careen/pause:1)

# On the same base and in the same store as `make test-image`, whose layers serve here. buildah says what has to be built again.
$(NODES_CACHE)/images/careen.tar: Dockerfile .dockerignore mk/image/build mk/image/strip.py mk/image/bytecode.py requirements.lock requirements-build.lock \
		pyproject.toml README.md LICENSE $(shell find operator scheduler_core -name '*.py') | $(NODES_CACHE)/images/pause.tar
	@echo "building careen's image from the Dockerfile (two minutes of processor time the first time)"
	@mk/image/build careen.invalid/careen:0.1.0 debian > $(@D)/build.log 2>&1 || { tail -n 30 $(@D)/build.log >&2; exit 1; }
	@$(call archive,careen.invalid/careen:0.1.0)

# Of careen's image a second tag, for upgrades.
$(NODES_CACHE)/store: $(NODES_CACHE)/images/pause.tar $(NODES_CACHE)/images/careen.tar $(NODES_CACHE)/bin/containerd tests/nodes/fill-store
	@tests/nodes/fill-store $@ $(filter %.tar,$^) example.com/app:1=localhost/careen/pause:1 careen.invalid/careen:0.2.0=careen.invalid/careen:0.1.0
	@touch $@
