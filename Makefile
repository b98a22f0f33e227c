# One set of build flags everywhere, so that nothing is compiled twice: no
# -trimpath, no -race in the default targets.
SHELL := /bin/bash
BIN := $(abspath bin)
GO ?= go
KUBE_VERSION := v1.37.2
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

LOCAL_LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION) \
	-X k8s.io/component-base/version.gitMajor=1 \
	-X k8s.io/component-base/version.gitMinor=37

# Cold, the race detector compiles everything once more; hence only what shares memory, and what it calls.
RACED := compare health plan generate policy inventory dialect apply engine httpapi source

export RUTTER_LOCALCLUSTER := $(BIN)/rutter-localcluster
export RUTTER_TESTENV_DIR ?= $(BIN)/testenv

.PHONY: help
help: ## show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

.PHONY: prerequisites
prerequisites:
	@hack/prerequisites

.PHONY: build
build: prerequisites ## build bin/rutter and bin/rutter-localcluster
	@mkdir -p $(BIN)
	@cd localcluster && $(GO) build -ldflags "$(LOCAL_LDFLAGS)" -o $(BIN)/rutter-localcluster ./cmd/rutter-localcluster
	@$(GO) build -ldflags "-X main.version=$(VERSION)" -o $(BIN)/rutter ./cmd/rutter

.PHONY: demo
demo: build ## run a whole fleet on this machine; ARGS="--exit-when-synced -o json"
	@$(BIN)/rutter demo $(ARGS)

.PHONY: test
test: build ## everything that must hold: vet, unit tests, end-to-end tests
	$(GO) vet ./...
	cd localcluster && $(GO) vet ./...
	@hack/test

.PHONY: test-unit
test-unit: build ## unit tests only
	@hack/test unit

.PHONY: test-e2e
test-e2e: build ## end-to-end tests only
	@hack/test e2e

.PHONY: race
race: build ## the race detector over the deciders, the engine and the adapters
	$(GO) test -race . $(addprefix ./internal/,$(addsuffix /...,$(RACED)))

.PHONY: lint
lint: $(BIN)/tools/golangci-lint ## golangci-lint over both modules
	$(BIN)/tools/golangci-lint run ./...
	cd localcluster && $(BIN)/tools/golangci-lint run -c ../.golangci.yaml ./...

$(BIN)/tools/golangci-lint:
	GOBIN=$(BIN)/tools $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# The tools that rendering is compared with, in tests and benchmarks.
$(BIN)/tools/kustomize:
	GOBIN=$(BIN)/tools $(GO) install sigs.k8s.io/kustomize/kustomize/v5@v5.8.2

$(BIN)/tools/helm:
	GOBIN=$(BIN)/tools $(GO) install helm.sh/helm/v4/cmd/helm@v4.3.1

.PHONY: vulncheck
vulncheck: ## known vulnerabilities of what is linked in
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

.PHONY: bench
bench: build $(BIN)/tools/kustomize $(BIN)/tools/helm ## time a set of 1,000 applications; PHASES=sync|render|plan|generate|memory|edit ARGS="-o json"
	$(GO) build -o $(BIN)/rutter-bench ./bench
	@$(BIN)/rutter-bench --phases "$(or $(PHASES),all)" $(ARGS)

.PHONY: generate
generate: ## deep copies and CRDs
	$(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object paths=./api/... crd:crdVersions=v1 output:crd:dir=deploy/crds

.PHONY: verify
verify: ## generated files are fresh
	$(GO) test -count=1 -run '^TestGenerated$$' ./internal/archtest

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN)
