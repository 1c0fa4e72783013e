# gpuvm: builds the extension (gpuvm.so), the engine (gpuvmd) and, where nvcc
# is, the CUDA virtual machine (gpuvm_cuda.so).
#
#   make, make install, make installcheck   as with any PGXS extension
#   make demo     installs what is missing, builds, shows the papers' queries
#   make check    builds and runs every test
#   make unit, unit-asan, unit-tsan         unit tests alone (no server)

# demo and check install what is missing, PostgreSQL's own build files included,
# so they cannot depend on those.
ifneq (,$(filter demo check,$(MAKECMDGOALS)))

.PHONY: demo check
demo:
	tests/demo/demo.sh
check:
	tests/check.sh

else

EXTENSION = gpuvm
MODULE_big = gpuvm
DATA = $(wildcard sql/gpuvm--*.sql)

BRIDGE_DIRS = pg store compiler planner executor sqlapi
BRIDGE_SRC = $(foreach d,$(BRIDGE_DIRS),$(wildcard src/$(d)/*.cc)) \
	$(wildcard src/tablet/*.cc) src/vm/program.cc src/vm/disassemble.cc
OBJS = $(BRIDGE_SRC:%.cc=build/so/%.o)

ENGINE_SRC = $(wildcard src/tablet/*.cc src/vm/*.cc src/engine/*.cc)
ENGINE_OBJS = $(ENGINE_SRC:%.cc=build/engine/%.o)
# What unit tests and engine benchmarks link: everything but main().
CORE_SRC = $(filter-out src/engine/main.cc,$(ENGINE_SRC))

UNIT_SRC = $(wildcard tests/unit/*_test.cc)
UNIT_TESTS = $(UNIT_SRC:tests/unit/%.cc=%)
BENCH_SRC = $(wildcard tests/bench/*_bench.cc)

REGRESS = $(sort $(patsubst tests/sql/%.sql,%,$(wildcard tests/sql/*.sql)))
REGRESS_OPTS = --inputdir=tests --outputdir=.
ISOLATION = $(sort $(patsubst tests/specs/%.spec,%,$(wildcard tests/specs/*.spec)))
ISOLATION_OPTS = --inputdir=tests --outputdir=.

SHLIB_LINK += -lstdc++
EXTRA_CLEAN = build gpuvmd gpuvm_cuda.so results output_iso regression.diffs regression.out tmp_check

override with_llvm = no
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

GPUVM_CXXFLAGS = -std=c++17 -Isrc -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-register -Wno-cast-function-type \
	-fno-strict-aliasing -fwrapv -ffp-contract=off -fno-math-errno -MMD -MP
BRIDGE_CXXFLAGS = $(GPUVM_CXXFLAGS) -O2 -g -fPIC -fvisibility=hidden -fexcess-precision=standard
ENGINE_CXXFLAGS = $(GPUVM_CXXFLAGS) -O3 -g -fno-trapping-math -pthread
# No libstdc++ from elsewhere is needed on the user's machine.
ENGINE_LDFLAGS = -pthread -ldl -static-libstdc++ -static-libgcc

all: gpuvmd

build/so/%.o: %.cc
	@mkdir -p $(@D)
	$(CXX) $(filter-out -fexcess-precision=standard,$(BRIDGE_CXXFLAGS)) $(CPPFLAGS) -c $< -o $@

build/engine/%.o: %.cc
	@mkdir -p $(@D)
	$(CXX) $(ENGINE_CXXFLAGS) -c $< -o $@

gpuvmd: $(ENGINE_OBJS)
	$(CXX) $^ $(ENGINE_LDFLAGS) -o $@

install: install-gpuvmd
.PHONY: install-gpuvmd
install-gpuvmd: gpuvmd
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_PROGRAM) gpuvmd '$(DESTDIR)$(pkglibdir)/gpuvmd.new'
	mv -f '$(DESTDIR)$(pkglibdir)/gpuvmd.new' '$(DESTDIR)$(pkglibdir)/gpuvmd'

uninstall: uninstall-gpuvmd
.PHONY: uninstall-gpuvmd
uninstall-gpuvmd:
	rm -f '$(DESTDIR)$(pkglibdir)/gpuvmd'

# -- unit tests and engine benchmarks ---------------------------------------

comma := ,

# $(1) flavour, $(2) flags
define flavour
build/$(1)/%.o: %.cc
	@mkdir -p $$(@D)
	$$(CXX) $(2) -c $$< -o $$@
build/$(1)/bin/%: build/$(1)/tests/unit/%.o $$(CORE_SRC:%.cc=build/$(1)/%.o)
	@mkdir -p $$(@D)
	$$(CXX) $(2) $$^ -lgtest -lgtest_main -ldl -o $$@
endef
$(eval $(call flavour,unit,$(ENGINE_CXXFLAGS)))
$(eval $(call flavour,asan,$(GPUVM_CXXFLAGS) -O1 -g -pthread -fno-omit-frame-pointer -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined))
# TSan would instrument the resolvers of target_clones, which run before it is set up.
$(eval $(call flavour,tsan,$(GPUVM_CXXFLAGS) -O1 -g -pthread -fsanitize=thread '-Dtarget_clones(...)='))

.SECONDARY:

.PHONY: unit unit-asan unit-tsan
unit: $(UNIT_TESTS:%=build/unit/bin/%)
	@set -e; for t in $^; do echo "== $$t"; $$t --gtest_brief=1; done
unit-asan: $(UNIT_TESTS:%=build/asan/bin/%)
	@set -e; for t in $^; do echo "== $$t"; $$t --gtest_brief=1; done
unit-tsan: $(addprefix build/tsan/bin/,$(filter engine_%,$(UNIT_TESTS)))
	@set -e; for t in $^; do echo "== $$t"; $$t --gtest_brief=1; done

build/unit/bench/%: build/unit/tests/bench/%.o $(CORE_SRC:%.cc=build/unit/%.o)
	@mkdir -p $(@D)
	$(CXX) $(ENGINE_CXXFLAGS) $^ -lbenchmark -ldl -o $@
.PHONY: engine-bench
engine-bench: $(BENCH_SRC:tests/bench/%.cc=build/unit/bench/%)

# The floor of row-returning queries: LOAD it by its path.
build/floor.so: build/so/tests/bench/floor/floor.o
	$(CXX) -shared $^ -o $@

-include $(shell find build -name '*.d' 2>/dev/null)

endif
