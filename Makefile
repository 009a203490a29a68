# Everything that people and CI run. `make help` is the map.

SHELL       := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
$(if $(filter oneshell,$(.FEATURES)),,$(error GNU make 3.82 or newer is required, this is $(MAKE_VERSION); on macOS: brew install make, then gmake))
MAKEFLAGS   += --no-print-directory

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X github.com/readygate/readygate/internal/version.Version=$(VERSION)
TAG     ?= v0.1.0
TOOL    := $(GO) tool -modfile=hack/tools/go.mod
KUBE    := $(CURDIR)/bin/kube
IMAGES  := $(CURDIR)/bin/images/images
UML     := $(CURDIR)/hack/uml/run $(CURDIR)/bin/e2e env READYGATE_E2E=required READYGATE_E2E_BINARY=$(CURDIR)/bin/e2e/e2e.test
CRDS    := api/crds/readiness.node.x-k8s.io_nodereadinessrules.yaml api/crds/readygate.dev_podreadinessrules.yaml

# No package of this module needs cgo, and packages that are compiled without it serve the control plane, tests and tools.
export CGO_ENABLED := 0
# The race detector needs a C compiler; without one the tests run without it.
TEST_RACE := $(if $(shell command -v $$($(GO) env CC)),CGO_ENABLED=1 $(GO) test -race,$(GO) test)

# The tests that docs/explanation/guarantees.md names. TestSchema… stands for all tests with this prefix.
PROMISES = $(shell grep -oE '`Test[A-Za-z0-9]+(…)?`' docs/explanation/guarantees.md | tr -d '`' | sed 's/…/.*/' | sort -u | paste -sd '|' -)
# Packages that need no race detector: functions without goroutines, and tests that run programs. The manager
# that test/chart runs in its process runs with the race detector in test/integration.
PURE     := ./internal/core/admission ./internal/core/noderule
PROGRAMS := ./test/architecture ./test/chart ./test/demo ./test/setup
# The largest tests of test/integration with managers only in processes of their own.
STORMS := ^(TestAManagerThatLeadsAfterTheCRDWentCleansUp|TestAManagerWithoutItsCRDReportsHowToReleaseNodes|TestAPausedLeaderKeepsMaxUnavailable|TestRulesAreEnforcedWithoutMutatingPolicies|TestCleanupCanBeKilledAnywhere|TestCleanupNamesWhatItCannotDo|TestCost|TestCrashesAtAnyMomentAreRepaired|TestNeverTwoWriters|TestNewNodesAreTaintedAtCreationDespiteCrashes|TestNoPodIsEarlyWhileManyNodesJoin|TestNoRuleIsBlockedForever|TestTaintedAtCreationAndDeletionWaitForTheSettleTime|TestPoliciesRejectNoRequestOfKubelets|TestReadygateCanBeRemovedInAnyOrder|TestRecordsOnManyNodesCostFewLists|TestFirstNodeAfterAPIServerStartIsTainted|TestTaintedAtCreationReportsWhyItIsFalse|TestTaintedAtCreationIsTrueForEveryAPIServer)$$

##@ Main

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nSet KUBEBUILDER_ASSETS to use control plane binaries of your own (etcd, kube-apiserver, kube-scheduler, kubectl, for demo, test-all and e2e also kube-controller-manager and kwok) instead of downloading or building them.\n'

.PHONY: build
build: ## Build the binaries into bin/.
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: test
test: ## Test the core, and the guarantees on a real API server: no root, Helm or browser (4 to 6 minutes).
	@[[ -n '$(PROMISES)' ]] || { echo "test: docs/explanation/guarantees.md names no tests: check PROMISES in the Makefile" >&2; exit 1; }
	@hack/kube/build $(KUBE) etcd kube-apiserver kube-scheduler kubectl
	@echo "test: the core, and the tests that docs/explanation/guarantees.md names, on a real API server: 4 to 6 minutes on 2 cores"
	@$(MAKE) -k -j 2 test-core test-promises # both at once

.PHONY: test-core test-promises
test-core:
	$(GO) test -short -vet=off ./internal/...

test-promises:
	$(GO) test -short -vet=off -parallel 4 -count=1 -timeout 20m -run '^($(PROMISES))$$' ./test/integration ./test/podgate ./test/reporter

.PHONY: test-all
test-all: kube cni helm ## Run every test, with the race detector: also load tests, the chart, the demo and the dashboard in a browser. Canary tests are skipped without root.
	@hack/browser >/dev/null || echo "test-all: the browser tests of the dashboard will be skipped"
	@$(if $(findstring -race,$(TEST_RACE)),,echo "test-all: no C compiler was found: without the race detector")
	@echo "test-all: every test: about 20 minutes on 2 cores"
	@$(MAKE) -k -j 2 test-others test-servers # both at once

# Go does not know the programs and scripts that the tests in test/ run: -count=1 runs them even if their code is the same.
.PHONY: test-others test-programs test-race test-servers test-storms
test-others:
	@MAKEFLAGS=k $(MAKE) test-storms test-programs test-race # one after the other

test-storms:
	$(GO) test -vet=off -count=1 -parallel 3 -timeout 45m -run '$(STORMS)' ./test/integration

test-programs:
	cd hack/images && $(TEST_RACE) -vet=off -count=1 -skip TestProductImagesRun ./...
	$(GO) -C hack/images test -vet=off -count=1 -timeout 45m -run TestProductImagesRun . # builds the programs; with the race detector gzip takes minutes
	$(GO) test -vet=off -count=1 -p 2 -parallel 2 -timeout 45m $(PROGRAMS)

test-race:
	$(GO) test -vet=off $(PURE)
	packages=$$($(GO) list ./... | grep -v /test/ | grep -vxFf <($(GO) list $(PURE))); $(TEST_RACE) -vet=off -timeout 20m $$packages

test-servers:
	packages=$$($(GO) list ./test/... | grep -vxFf <($(GO) list $(PROGRAMS) ./test/integration ./test/podgate)); \
	  $(TEST_RACE) -vet=off -count=1 -p 2 -parallel 2 -timeout 45m -skip '$(STORMS)' ./test/integration ./test/podgate $$packages

.PHONY: demo
demo: kube ## Play a scenario on a real control plane: nodes join, are held, and are released (SCENARIO=cni-guide, ONCE=1; see docs/get-started/demo.md).
	@mkdir -p bin/demo
	@$(GO) build -o bin/demo/demo ./hack/demo
	@SCENARIO='$(SCENARIO)' ONCE='$(ONCE)' exec bin/demo/demo $(or $(KUBEBUILDER_ASSETS),$(KUBE))

.PHONY: bench
bench: kube build ## Run the benchmarks: hot paths, node creation, the reporter, the manager at scale, then pods at once on a real node (SHORT=1: count only, as CI does).
	@mkdir -p bin/scale
	@$(GO) build -o bin/scale/scale ./test/scale
ifeq ($(SHORT),)
	$(GO) test -run '^$$' -bench . -benchmem ./internal/...
	$(GO) test -run '^$$' -bench . -benchtime 4x ./test/integration
	$(GO) test -run '^$$' -bench Footprint -benchtime $(or $(REPORTER_TIME),10m) -timeout 0 ./test/reporter
	$(GO) test -run '^$$' -bench Delay -benchtime 200x -timeout 0 ./test/reporter
	bin/scale/scale run --plan full --out $(or $(OUT),bin/scale/results.json)
	@$(MAKE) bench-pods
else
	@echo "bench: small clusters, and only counts are asserted"
	bin/scale/scale run --plan short --check --out bin/scale/short.json
endif

.PHONY: bench-pods
bench-pods: ## Run the benchmarks of gates alone on a real node: a hundred pods at once, and a thousand from gate to latch. Skipped without root.
	@if why=$$($(MAKE) able 2>&1); then $(MAKE) bench-nodes; else echo "bench: a hundred pods at once on a real node are left out: $$(head -n 1 <<<"$$why")"; fi

.PHONY: bench-nodes
bench-nodes: able build kube helm images node
	READYGATE_E2E=required READYGATE_BENCH=pods $(GO) test -count=1 -timeout 90m -v -run 'TestTheCostOfGatesForAHundredPods|TestTheTimeFromGateToLatch' ./test/e2e

.PHONY: fuzz
fuzz: ## Fuzz the planner and the parsers, a minute each (FUZZTIME=1m).
	@for target in core/noderule:FuzzPlan reporter:FuzzParseConfig reporter/check:FuzzParse reporter/check:FuzzServingOf manager/nodecache:FuzzCut; do \
	  $(GO) test -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(or $(FUZZTIME),1m) ./internal/$${target%:*}; done

.PHONY: manifests
manifests: ## Write what an administrator installs into dist/: crds.yaml, policies.yaml, and mutating-policies.yaml for clusters that serve them.
	@$(GO) run ./hack/manifests dist

.PHONY: images
images: override VERSION = $(TAG)
images: ## Build images for amd64 and arm64 into dist/images/ (TAG=v0.1.0). PUSH=registry.example.com pushes them (INSECURE=1: HTTP).
	@[[ '$(TAG)' =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$$ ]] || { echo "images: TAG is '$(TAG)', must be letters, digits and _.- only, e.g. TAG=v0.1.0" >&2; exit 1; }
	@echo "images: building $(TAG) for amd64 and arm64 into dist/images: some minutes the first time"
	@$(GO) -C hack/images build -o $(IMAGES) .
	@$(IMAGES) sources --recipe hack/images/images.yaml | while read -r arch file; do echo "images: building $$file"; \
	  GOOS=linux GOARCH=$$arch $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $$file ./cmd/$${file##*/}; done
	@rm -rf dist/images
	@$(IMAGES) build --recipe hack/images/images.yaml --out dist/images --tag $(TAG) --revision "$$(git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null)"
	@$(if $(PUSH),$(IMAGES) push --to $(PUSH) $(if $(INSECURE),--insecure) dist/images/*.tar)

.PHONY: e2e
e2e: able build kube helm images node ## Run the scenarios on real nodes: kubelets, containerd and flannel in namespaces of this machine (RUN=TestUninstall: one). Needs root.
	@hack/chart/plain bin/chart/helm dist registry.example.com
	@echo "e2e: real nodes: about 12 minutes on 2 cores. When a scenario fails, the logs of its nodes are in bin/e2e/"
	$(if $(RUN),,READYGATE_E2E=required $(GO) test -vet=off -count=1 -v ./test/e2e/lab)
	READYGATE_E2E=required $(GO) test -vet=off -count=1 -timeout 40m -parallel 3 -v $(if $(RUN),-run '$(RUN)') ./test/e2e

# Checked before the build.
.PHONY: able
able:
	@[[ $$(uname) == Linux ]] || { echo "e2e: real nodes need Linux" >&2; exit 1; }
	@[[ $$(id -u) == 0 ]] || { echo "e2e: real nodes need root, for namespaces and mounts: sudo make e2e" >&2; exit 1; }
	@[[ -e /sys/fs/cgroup/memory/cgroup.procs ]] || grep -qsE '\bcpu\b.*\bmemory\b.*\bpids\b' /sys/fs/cgroup/cgroup.controllers || { \
	  echo "e2e: real nodes need cgroup v2 with the controllers cpu, memory and pids, or cgroup v1; /sys/fs/cgroup has $$(cat /sys/fs/cgroup/cgroup.controllers 2>/dev/null || echo neither)" >&2; exit 1; }

.PHONY: able-uml
able-uml:
	@[[ $$(id -u) == 0 ]] || { echo "e2e-cgroup-v2: needs root, for namespaces and mounts: sudo make e2e-cgroup-v2" >&2; exit 1; }
	@command -v linux.uml apt-get >/dev/null || { echo "e2e-cgroup-v2: needs Debian's user-mode-linux, kmod and iptables: install these packages first" >&2; exit 1; }

.PHONY: e2e-cgroup-v2
e2e-cgroup-v2: able-uml kube helm images node ## Run the lab's own test and two scenarios on cgroup v2, under Debian's user-mode-linux: about 15 minutes. Needs root.
	@mkdir -p bin/e2e
	$(GO) test -c -o bin/e2e/ ./test/e2e ./test/e2e/lab
	cd test/e2e/lab && $(UML) ../../../bin/e2e/lab.test -test.v -test.timeout 30m
	cd test/e2e && $(UML) ../../bin/e2e/e2e.test -test.v -test.timeout 30m -test.run 'TestTheGuidesLimitsSuffice|TestReachOpensGatesOnANetworkWithoutADaemon/is_tried'

.PHONY: helm
helm: ## Build Helm 4, Helm 3 and promtool from source into bin/chart/.
	@hack/chart/build bin/chart

.PHONY: chart
chart: helm ## Lint, render and test the chart with Helm 3 and 4.
	@hack/kube/build $(KUBE) etcd kube-apiserver kubectl
	@echo "chart: linting, rendering, and installing on a real API server: 5 to 7 minutes"
	$(GO) test -vet=off -count=1 -parallel 3 ./test/chart

.PHONY: install-yaml
install-yaml: ## Write install.yaml and uninstall.yaml, for kubectl, into dist/ (REGISTRY=registry.example.com; KUBE_VERSION=v1.35.0: for a cluster without MutatingAdmissionPolicy). Uses an installed Helm, or builds it.
	@[[ -n '$(REGISTRY)' ]] || { echo "install-yaml: REGISTRY is empty: name the registry that has the images, e.g. make install-yaml REGISTRY=registry.example.com" >&2; exit 1; }
	@command -v helm >/dev/null || hack/chart/build bin/chart
	@KUBE_VERSION='$(KUBE_VERSION)' hack/chart/plain "$$(command -v helm || echo bin/chart/helm)" dist '$(REGISTRY)'

##@ Control plane

.PHONY: matrix
matrix: kube helm ## Run the tests that depend on the version of Kubernetes on API servers of 1.33 to 1.37 (VERSIONS="1.33 1.34": only these), and write docs/reference/version-matrix.md. Builds them first: an hour on 2 cores, then 10 to 18 minutes for each run.
	@echo "matrix: the tests of hack/matrix/rows.go on every version: logs are in bin/matrix/"
	@$(GO) run ./hack/matrix $(VERSIONS)

.PHONY: kube
kube: ## Download kube-apiserver, etcd, kubectl, KWOK and other programs into bin/kube/, or build them from source (KUBE_FROM=release or source: only that).
	@hack/kube/build $(KUBE)

.PHONY: cni
cni: ## Build the CNI plugins that tests use from source into bin/node/cni/.
	@hack/node/build bin/node/cni

.PHONY: node
node: ## Build what a real node has (kubelet, containerd, flannel) into bin/node/, most of it from source.
	@hack/node/machine bin/node

.PHONY: cluster
cluster: ## Run a control plane on loopback to try things on; Ctrl-C ends it.
	@hack/kube/build $(KUBE) etcd kube-apiserver kubectl
	@$(GO) build -o bin/cluster ./hack/cluster
	@exec bin/cluster $(or $(KUBEBUILDER_ASSETS),$(KUBE)) bin/kubeconfig

##@ Source

.PHONY: generate
generate: ## Generate deep copies, CRDs, RBAC, the policies of the chart and the examples, and the generated pages of docs/.
	@mkdir -p bin
	$(TOOL) controller-gen object crd paths=./api/... output:crd:artifacts:config=api/crds
	@# "key:" without a value is null. The API server drops a null that is not nullable, and the rule
	@# would select more nodes than written. controller-gen has no marker for the values of a map.
	@for crd in $(CRDS); do \
	  awk '{print} /additionalProperties:/ {match($$0, /^ */); printf "%*snullable: true\n", RLENGTH + 2, ""}' $$crd >bin/crd.yaml; \
	  cp bin/crd.yaml $$crd; done
	$(TOOL) controller-gen rbac:roleName=readygate-manager paths=./internal/manager output:rbac:artifacts:config=charts/readygate/files
	$(TOOL) controller-gen rbac:roleName=readygate-cleanup,fileName=cleanup-role.yaml paths=./internal/manager/uninstall output:rbac:artifacts:config=charts/readygate/files
	$(TOOL) controller-gen rbac:roleName=readygate-podgate,fileName=podgate-role.yaml paths=./internal/podgate/... output:rbac:artifacts:config=charts/readygate/files
	$(TOOL) crd-ref-docs --config hack/docs/api/config.yaml --templates-dir hack/docs/api --source-path api --renderer markdown --output-path bin/api.md
	@cat -s bin/api.md >docs/reference/api.md
	@$(GO) run ./hack/docs charts/readygate docs/reference
	@$(GO) run ./test/scale report
	@$(GO) run ./hack/manifests --examples examples >/dev/null
	@$(GO) run ./hack/manifests --chart charts/readygate >/dev/null

.PHONY: fmt
fmt: ## Format the source.
	$(TOOL) golangci-lint fmt

.PHONY: verify
verify: verify-generated verify-modules lint ## Check generated files, modules, format, vet, lint, import direction, and links and words of the docs.
	$(GO) vet ./...
	$(GO) -C hack/images vet ./...
	$(GO) test -count=1 ./test/architecture

.PHONY: verify-generated
verify-generated: generate
	@git diff --exit-code -- api charts docs examples || { echo "verify: generated files are not up to date: run make generate and commit"; exit 1; }
	@test -z "$$(git status --porcelain -- api charts docs examples | grep '^??')" || { git status --short -- api charts docs examples; echo "verify: generated files are not committed"; exit 1; }

.PHONY: verify-modules
verify-modules:
	@for dir in . hack/images hack/kube hack/node hack/tools; do (cd $$dir && $(GO) mod tidy -diff >/dev/null) || { echo "verify: go.mod in $$dir is not tidy: run go mod tidy there"; exit 1; }; done

.PHONY: lint
lint: ## Lint with golangci-lint (gofmt and go vet included).
	$(TOOL) golangci-lint run
	cd hack/images && $(GO) tool -modfile=../tools/go.mod golangci-lint run
