# Makefile: the commands a person types. CMake does the building (CMakePresets.json), tools/ does the rest; this file owns only
# the order. `make run` and `make test` install what is missing first; everything lands in build/ and models/.

RELEASE := build/release
PROMPT  ?= Once upon a time
export PROMPT
ARGS    ?=
# BENCH=matmul_q4_0 times that slot in `make check`.
BENCH   ?=

.DEFAULT_GOAL := help
.PHONY: help run test test-full models models-all build check bench asan tsan fuzz format install clean

help: ## this list
	@echo 'cera: make run and make test work on a fresh Debian or Ubuntu with only git, make and apt.'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 \2/p' Makefile | awk '{ w = $$1 " " $$2; $$1 = $$2 = ""; printf "  %-16s %s\n", w, substr($$0, 3) }'

build: ## the program and the libraries, Release, in build/release
	@tools/install-deps run
	@tools/build release

run: build ## build, then write a text: make run PROMPT="..." ARGS="-n 64"
	@tools/run-demo "$$PROMPT" $(ARGS)

test: ## build and run every test
	@tools/test

test-full: ## the full matrices of every test; takes long
	@tools/test --full

models: ## fetch SmolLM2-135M-Instruct into models/ (98 MB)
	@tools/install-deps run
	@tools/fetch-models

models-all: ## and Gemma 3 270M (253 MB more)
	@tools/install-deps run
	@tools/fetch-models --gemma

check: ## kernels against the C reference; BENCH=slot times one
	@tools/install-deps test
	@tools/build release cera_check
	@$(RELEASE)/cera_check $(if $(BENCH),--bench $(BENCH))

bench: build ## prompt and generation speed on the model of `make run`
	@tools/run-demo --bench $(ARGS)

asan: ## unit tests under AddressSanitizer and UBSan
	@tools/install-deps ci
	@.ci/run --stage asan

tsan: ## pool and session tests under ThreadSanitizer
	@tools/install-deps ci
	@.ci/run --stage tsan

fuzz: ## each fuzzer for 20 s, with coverage
	@tools/install-deps ci
	@.ci/run --stage fuzz

format: ## clang-format every C file in place
	@tools/format.sh

install: build ## cmake --install; DESTDIR and PREFIX as usual
	@cmake --install $(RELEASE) $(if $(PREFIX),--prefix $(PREFIX))

clean: ## remove build/ (models/ stays)
	rm -rf build
