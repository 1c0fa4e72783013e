# gpuvm: builds the extension (gpuvm.so), the engine (gpuvmd) and, where nvcc
# is, the CUDA virtual machine (gpuvm_cuda.so).
#
#   make, make install, make installcheck   as with any PGXS extension
#                 NVCC=PATH names the CUDA compiler, NVCC= builds without;
#                 CUDA_ARCHS="90" builds for these GPUs only; both also in local.mk
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

# This checkout's own settings, such as CUDA_ARCHS = 90.
-include local.mk

EXTENSION = gpuvm
MODULE_big = gpuvm
DATA = $(wildcard sql/gpuvm--*.sql)

BRIDGE_DIRS = pg store compiler plan planner executor fdw sqlapi
BRIDGE_SRC = $(foreach d,$(BRIDGE_DIRS),$(wildcard src/$(d)/*.cc)) \
	$(wildcard src/tablet/*.cc) src/vm/program.cc src/vm/disassemble.cc src/vm/text_match.cc
OBJS = $(BRIDGE_SRC:%.cc=build/so/%.o)

ENGINE_SRC = $(wildcard src/tablet/*.cc src/vm/*.cc src/engine/*.cc)
ENGINE_OBJS = $(ENGINE_SRC:%.cc=build/core/%.o)
# What unit tests and engine benchmarks link: everything but main().
CORE_SRC = $(filter-out src/engine/main.cc,$(ENGINE_SRC))
CUDA_HOST_SRC = $(sort $(wildcard cuda/*.cc))
CUDA_COMPILED_SRC = $(CUDA_HOST_SRC)
EMULATED_KERNEL_SRC = $(wildcard cuda/*.cu)
CUDA_KERNEL_SRC = $(wildcard cuda/*.cu)

# Where tests are compiled anew (tests/check.sh, make TOGETHER=yes) these sources are a few: half of their time goes to
# the headers that they share, and each program is linked with all that it tests. No two of a group give something the same name.
TOGETHER_KERNELS = build/together/interpreter_8.cu build/together/interpreter_16.cu
DEBUG_INFO = -g
ifdef TOGETHER
DEBUG_INFO = -g1
tests_of = $(foreach t,$(2),tests/unit/$(1)_$(t)_test.cc)
TOGETHER_engine_1_test = $(wordlist 1,6,$(sort $(wildcard tests/unit/engine_*_test.cc)))
TOGETHER_engine_2_test = $(wordlist 7,99,$(sort $(wildcard tests/unit/engine_*_test.cc)))
TOGETHER_vm_1_test = $(call tests_of,vm,cpu float_sum join join_filter map value_order)
TOGETHER_vm_2_test = $(call tests_of,vm,quotient random sort text_match)
TOGETHER_vm_3_test = $(call tests_of,vm,dates join_table program text_order text_part wide)
TOGETHER_vm_4_test = $(call tests_of,vm,window window_cases)
# The first two are those that run with late streams.
TOGETHER_cuda_1_test = $(call tests_of,cuda,runtime stage)
TOGETHER_cuda_2_test = $(call tests_of,cuda,set window)
TOGETHER_cuda_3_test = $(call tests_of,cuda,delta groups join_filter key_filter text_part)
TOGETHER_cuda_4_test = $(call tests_of,cuda,join join_index join_kernels join_passes)
TOGETHER_cuda_5_test = $(call tests_of,cuda,join_count map narrow opcode sort text_match)
TOGETHER_UNIT_TESTS = engine_1_test engine_2_test vm_1_test vm_2_test vm_3_test vm_4_test
TOGETHER_CUDA_TESTS = cuda_1_test cuda_2_test cuda_3_test cuda_4_test cuda_5_test
TOGETHER_engine = $(filter-out src/engine/main.cc,$(wildcard src/engine/*.cc))
TOGETHER_cuda_1 = $(wordlist 1,12,$(CUDA_HOST_SRC))
TOGETHER_cuda_2 = $(wordlist 13,24,$(CUDA_HOST_SRC))
TOGETHER_cuda_3 = $(wordlist 25,99,$(CUDA_HOST_SRC))
TOGETHER_vm_core_1 = \
	$(foreach f,aggregate bind groups hash_build join% lower,$(filter src/vm/cpu_$(f).cc,$(ENGINE_SRC)))
TOGETHER_vm_core_2 = \
	$(foreach f,hash_table results run sort% steps text_keys,$(filter src/vm/cpu_$(f).cc,$(ENGINE_SRC)))
TOGETHER_vm_core_3 = $(foreach f,pages text_compare window%,$(filter src/vm/cpu_$(f).cc,$(ENGINE_SRC)))
TOGETHER_vm_core_4 = $(filter-out src/vm/cpu_%,$(wildcard src/vm/*.cc))
TOGETHER_CORE = engine vm_core_1 vm_core_2 vm_core_3 vm_core_4
CORE_SRC = $(filter-out src/engine/% $(foreach g,$(TOGETHER_CORE),$(TOGETHER_$(g))),$(ENGINE_SRC)) \
	$(TOGETHER_CORE:%=build/together/%.cc)
CUDA_COMPILED_SRC = build/together/cuda_1.cc build/together/cuda_2.cc build/together/cuda_3.cc
# Of a width the operations without a case in the loop are instantiated once: they are half of each interpreter.
TOGETHER_interpreter_8 = cuda/interpreter_8.cu cuda/interpreter_grid_8.cu
TOGETHER_interpreter_16 = cuda/interpreter_16.cu cuda/interpreter_grid_16.cu cuda/interpreter_pairs.cu
EMULATED_KERNEL_SRC = $(filter-out $(TOGETHER_interpreter_8) $(TOGETHER_interpreter_16),$(wildcard cuda/*.cu)) $(TOGETHER_KERNELS)
# Likewise for nvcc, but only where nothing is optimized: what is takes longer on one processor than on several.
CUDA_KERNEL_SRC = $(if $(CUDA_UNRUN),$(EMULATED_KERNEL_SRC),$(wildcard cuda/*.cu))
endif
# $(1) sources of tests, $(2) groups: the programs that these become.
programs_of = $(patsubst tests/unit/%.cc,%,$(filter-out $(foreach t,$(2),$(TOGETHER_$(t))),$(1))) $(2)
# What unit tests share: the interpreter that they compare with, random tables and programs.
UNIT_SHARED = $(patsubst %.cc,%,$(wildcard tests/unit/vm_reference*.cc) tests/unit/vm_random.cc $(wildcard tests/unit/vm_generator*.cc))

UNIT_SRC = $(filter-out tests/unit/cuda_%,$(wildcard tests/unit/*_test.cc))
UNIT_TESTS = $(call programs_of,$(UNIT_SRC),$(TOGETHER_UNIT_TESTS))
BENCH_SRC = $(wildcard tests/bench/*_bench.cc)

REGRESS = $(sort $(patsubst tests/sql/%.sql,%,$(wildcard tests/sql/*.sql)))
REGRESS_OPTS = --inputdir=tests --outputdir=.
ISOLATION = $(sort $(patsubst tests/specs/%.spec,%,$(wildcard tests/specs/*.spec)))
ISOLATION_OPTS = --inputdir=tests --outputdir=.
# The device that installcheck must have run on, cpu or cuda; otherwise any will do.
ifdef GPUVM_TEST_DEVICE
export PGOPTIONS := $(PGOPTIONS) -c gpuvm.device=$(GPUVM_TEST_DEVICE)
endif

SHLIB_LINK += -lstdc++
EXTRA_CLEAN = build gpuvmd gpuvm_cuda.so results output_iso regression.diffs regression.out tmp_check

override with_llvm = no
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

GPUVM_CXXFLAGS = -std=c++17 -Isrc -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-register -Wno-cast-function-type \
	-fno-strict-aliasing -fwrapv -ffp-contract=off -fno-math-errno -MMD -MP
BRIDGE_CXXFLAGS = $(GPUVM_CXXFLAGS) -O2 $(DEBUG_INFO) -fPIC -fvisibility=hidden -fexcess-precision=standard
ENGINE_CXXFLAGS = $(GPUVM_CXXFLAGS) -O3 $(DEBUG_INFO) -fno-trapping-math -pthread
# The shared libstdc++, as in gpuvm_cuda.so: an exception cannot pass from one copy of it to another.
ENGINE_LDFLAGS = -pthread -ldl

all: gpuvmd

# $(1) folder, $(2) flags, $(3) where precompiled.h is: headers that many sources read, compiled once for all of them.
define precompiled
build/$(1)/precompiled.h.gch: $(3)/precompiled.h
	@mkdir -p $$(@D)
	@cp $$< build/$(1)/precompiled.h
	$$(CXX) $(2) -x c++-header $$< -o $$@
endef

BRIDGE_COMPILED_WITH = $(filter-out -fexcess-precision=standard,$(BRIDGE_CXXFLAGS)) $(CPPFLAGS)
$(eval $(call precompiled,so,$$(BRIDGE_COMPILED_WITH),src/pg))
build/so/%.o: %.cc
	@mkdir -p $(@D)
	$(CXX) $(BRIDGE_COMPILED_WITH) $(PRECOMPILED) -c $< -o $@
# A checkout's older objects stay; what new ones have read includes what is precompiled. (regex.cc: regguts.h has a type chr.)
ifdef TOGETHER
WITH_POSTGRES = $(filter-out build/so/src/tablet/% build/so/src/vm/% %/regex.o,$(OBJS))
$(WITH_POSTGRES): PRECOMPILED = -include build/so/precompiled.h -fpch-deps
$(WITH_POSTGRES): | build/so/precompiled.h.gch
endif

# Of these the CUDA library and the emulated one take what they share with gpuvmd.
build/core/%.o: %.cc
	@mkdir -p $(@D)
	$(CXX) $(ENGINE_CXXFLAGS) -fPIC -fvisibility=hidden -c $< -o $@

gpuvmd: $(ENGINE_OBJS)
	$(CXX) $^ $(ENGINE_LDFLAGS) -o $@

install: install-gpuvmd
.PHONY: install-gpuvmd
# By renaming: servers may be running the old ones.
install-gpuvmd: gpuvmd
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_PROGRAM) gpuvmd '$(DESTDIR)$(pkglibdir)/gpuvmd.new'
	mv -f '$(DESTDIR)$(pkglibdir)/gpuvmd.new' '$(DESTDIR)$(pkglibdir)/gpuvmd'

uninstall: uninstall-gpuvmd
.PHONY: uninstall-gpuvmd
uninstall-gpuvmd:
	rm -f '$(DESTDIR)$(pkglibdir)/gpuvmd' '$(DESTDIR)$(pkglibdir)/gpuvm_cuda.so'

# -- the CUDA virtual machine ------------------------------------------------

ifeq ($(origin NVCC),undefined)
NVCC := $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
endif

# What the library needs of the other layers; its engine is not the CPU's.
CUDA_CORE_SRC = $(filter-out src/vm/cpu_%,$(wildcard src/vm/*.cc)) $(wildcard src/tablet/*.cc)
CUDA_OBJS = $(CUDA_KERNEL_SRC:%.cu=build/cuda/%.cu.o) $(CUDA_COMPILED_SRC:%.cc=build/cuda/%.o) \
	$(CUDA_CORE_SRC:%.cc=build/core/%.o)

# For a toolkit's sake evaluated in recipes only: each asks nvcc.
CUDA_KNOWN_ARCHS = $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code))
CUDA_ARCHS ?= $(filter 75 80 86 89 90 100 120,$(CUDA_KNOWN_ARCHS))
CUDA_PTX = -gencode arch=compute_$(lastword $(1)),code=compute_$(lastword $(1))
CUDA_GENCODE = $(foreach a,$(1),-gencode arch=compute_$(a),code=sm_$(a)) $(CUDA_PTX)
# For ptxas: tests/check.sh does without its optimizations where no GPU would run the code.
PTXAS_FLAGS ?=
# Likewise: sources that become PTX only, and that not optimized. (The scans' interpreter goes all the way as interpreter_4.)
CUDA_UNRUN ?=
CUDA_INCLUDE = $(shell $(NVCC) -dryrun -x cu -c /dev/null -o /dev/null 2>&1 | sed -n 's/^\#$$ INCLUDES="\(.*\)" *$$/\1/p')

empty :=
comma := ,
space := $(empty) $(empty)
CUDA_HOST_FLAGS = -fPIC -fvisibility=hidden -fno-strict-aliasing -fwrapv -ffp-contract=off -fno-math-errno
# No contraction to fma: it would change the results of floats.
NVCCFLAGS = -std=c++17 -O3 --fmad=false -Isrc -Icuda -Xcompiler $(subst $(space),$(comma),$(CUDA_HOST_FLAGS)) $(PTXAS_FLAGS:%=-Xptxas %) -MMD -MP

# Holds the architectures of the objects, and how they were optimized: others mean new objects.
build/cuda/archs: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_ARCHS) $(PTXAS_FLAGS) $(CUDA_UNRUN)' | cmp -s - $@ || echo '$(CUDA_ARCHS) $(PTXAS_FLAGS) $(CUDA_UNRUN)' >$@
.PHONY: FORCE
FORCE:

build/cuda/%.cu.o: %.cu build/cuda/archs
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(if $(filter $(basename $(notdir $<)),$(CUDA_UNRUN)),-Xcicc -O0 $(call CUDA_PTX,$(CUDA_ARCHS)),$(call CUDA_GENCODE,$(CUDA_ARCHS))) --threads 0 -c $< -o $@

$(CUDA_COMPILED_SRC:%.cc=build/cuda/%.o): build/cuda/%.o: %.cc
	@mkdir -p $(@D)
	$(CXX) $(ENGINE_CXXFLAGS) -fPIC -fvisibility=hidden -Icuda $(CUDA_INCLUDE) -c $< -o $@

# The driver is not linked: the library loads where there is none, and says so.
gpuvm_cuda.so: $(CUDA_OBJS) cuda/exports.map
	$(NVCC) -shared -cudart static $(CUDA_OBJS) -Xcompiler -pthread \
		-Xlinker --no-undefined,--exclude-libs,ALL,--version-script=cuda/exports.map -ldl -lrt -o $@

# Loads it here, with or without a driver.
build/unit/bin/load_cuda: build/unit/tests/unit/load_cuda.o
	@mkdir -p $(@D)
	$(CXX) $(ENGINE_CXXFLAGS) $^ -lgtest -lgtest_main -ldl -o $@
.PHONY: cuda-load
cuda-load: build/unit/bin/load_cuda gpuvm_cuda.so
	GPUVM_CUDA_LIBRARY=$(CURDIR)/gpuvm_cuda.so build/unit/bin/load_cuda --gtest_brief=1

# Engine experiments on a GPU.
build/cuda/bench/%: build/cuda/tests/bench/%.cu.o $(CUDA_OBJS)
	@mkdir -p $(@D)
	$(NVCC) -cudart static $^ -Xcompiler -pthread -ldl -lrt -o $@

# The joins' kernels against plain loops, on a GPU; make unit-cuda runs the same without one.
build/cuda/tests/unit/%.o: tests/unit/%.cc
	@mkdir -p $(@D)
	$(CXX) $(ENGINE_CXXFLAGS) -Icuda $(CUDA_INCLUDE) -c $< -o $@
build/cuda/test/%: build/cuda/tests/unit/%.o $(CUDA_OBJS)
	@mkdir -p $(@D)
	$(NVCC) -cudart static $^ -lgtest -lgtest_main -Xcompiler -pthread -ldl -lrt -o $@
.PHONY: cuda-test
cuda-test: build/cuda/test/cuda_join_kernels_test build/cuda/test/cuda_key_filter_test

.PHONY: cuda-bench
cuda-bench: $(patsubst tests/%.cu,build/cuda/%,$(wildcard tests/bench/*.cu))

all: cuda
install: install-cuda
.PHONY: cuda install-cuda nvcc-path
nvcc-path:
	@echo $(NVCC)
ifneq (,$(NVCC))
cuda: gpuvm_cuda.so
install-cuda: gpuvm_cuda.so
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_SHLIB) gpuvm_cuda.so '$(DESTDIR)$(pkglibdir)/gpuvm_cuda.so.new'
	mv -f '$(DESTDIR)$(pkglibdir)/gpuvm_cuda.so.new' '$(DESTDIR)$(pkglibdir)/gpuvm_cuda.so'
else
cuda:
	@echo "gpuvm_cuda.so is not built: no nvcc in PATH or /usr/local/cuda/bin, and none named by NVCC="
# An older build's would not fit the new gpuvmd.
install-cuda: cuda
	rm -f '$(DESTDIR)$(pkglibdir)/gpuvm_cuda.so'
endif

# -- unit tests and engine benchmarks ---------------------------------------

$(patsubst %,build/together/%.cc,$(TOGETHER_CORE) cuda_1 cuda_2 cuda_3 $(TOGETHER_UNIT_TESTS) $(TOGETHER_CUDA_TESTS)) $(TOGETHER_KERNELS): build/together/%: FORCE
	@mkdir -p $(@D)
	@printf '#include "../../%s"\n' $(TOGETHER_$(basename $*)) >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# -Og compiles in two thirds of -O1's time, and leaves the sanitizers more to look at.
SANITIZED_FLAGS = $(GPUVM_CXXFLAGS) -Og -g1 -pthread
ASAN_FLAGS = $(SANITIZED_FLAGS) -fno-omit-frame-pointer -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined
# TSan would instrument the resolvers of target_clones, which run before it is set up.
TSAN_FLAGS = $(SANITIZED_FLAGS) -fsanitize=thread '-Dtarget_clones(...)='
# For tests that run under sanitizers: assertions are most of their code, and take most of the time to compile as it is. What
# is tested has all checks, and stands first where tests are linked: of an inline function its copy is taken.
SANITIZED_TEST_FLAGS = -fno-sanitize=null,vptr,alignment,object-size

# $(1) flavour, $(2) flags, $(3) more for the tests themselves
define flavour
$(call precompiled,$(1),$(2) $(3),tests/unit)
build/$(1)/%.o: %.cc
	@mkdir -p $$(@D)
	$$(CXX) $(2) -c $$< -o $$@
build/$(1)/tests/unit/%.o: tests/unit/%.cc build/$(1)/precompiled.h.gch
	@mkdir -p $$(@D)
	$$(CXX) $(2) $(3) -include build/$(1)/precompiled.h -c $$< -o $$@
$$(TOGETHER_UNIT_TESTS:%=build/$(1)/tests/unit/%.o): build/$(1)/tests/unit/%.o: build/together/%.cc build/$(1)/precompiled.h.gch
	@mkdir -p $$(@D)
	$$(CXX) $(2) $(3) -Wno-subobject-linkage -include build/$(1)/precompiled.h -c $$< -o $$@
build/$(1)/bin/%: $$(CORE_SRC:%.cc=build/$(1)/%.o) $$(UNIT_SHARED:%=build/$(1)/%.o) build/$(1)/tests/unit/%.o
	@mkdir -p $$(@D)
	$$(CXX) $(2) $$^ -lgtest -lgtest_main -ldl -o $$@
endef
$(eval $(call flavour,unit,$(ENGINE_CXXFLAGS)))
$(eval $(call flavour,asan,$$(ASAN_FLAGS),$$(SANITIZED_TEST_FLAGS)))
$(eval $(call flavour,tsan,$$(TSAN_FLAGS),$$(SANITIZED_TEST_FLAGS)))

.SECONDARY:

.PHONY: unit unit-asan unit-tsan
# Their output comes whole. X.late is X with the emulated device's streams run late.
# Long ones first, so that none is left alone at the end. One that hangs says where, as far as its sanitizer can.
LONG_TESTS = cuda_2_test.late cuda_2_test cuda_3_test cuda_1_test.late cuda_1_test cuda_4_test cuda_5_test vm_1_test \
	vm_2_test vm_3_test vm_4_test engine_1_test engine_2_test cuda_set_test.late cuda_set_test \
	cuda_window_test.late cuda_window_test cuda_groups_test cuda_delta_test cuda_join_test cuda_join_index_test \
	cuda_sort_test cuda_opcode_test cuda_runtime_test.late cuda_runtime_test cuda_join_kernels_test \
	cuda_stage_test.late cuda_stage_test vm_join_test vm_cpu_test vm_text_match_test vm_text_order_test \
	vm_sort_test vm_map_test engine_index_test engine_stage_test engine_join_test
long_first = $(foreach t,$(LONG_TESTS),$(filter %/$(t),$(1))) $(filter-out $(addprefix %/,$(LONG_TESTS)),$(1))
two_at_a_time = export ASAN_OPTIONS=handle_abort=1:$$ASAN_OPTIONS TSAN_OPTIONS=handle_abort=1:$$TSAN_OPTIONS; \
	printf '%s\n' $(call long_first,$(1)) | \
	xargs -P 2 -I{} sh -c 'test={}; case $$test in *.late) export GPUVM_EMULATED_DEFER=1; esac; \
		timeout -s ABRT -k 10 $${TEST_TIMEOUT:-600} $${test%.late} --gtest_brief=1 >$$test.log 2>&1; rc=$$?; \
		echo "== $$test"; cat $$test.log; exit $$rc'
unit: $(UNIT_TESTS:%=build/unit/bin/%)
	@$(call two_at_a_time,$^)
ASAN_TESTS = $(UNIT_TESTS:%=build/asan/bin/%)
TSAN_TESTS = $(addprefix build/tsan/bin/,$(filter engine_% tablet_dictionary_builder_%,$(UNIT_TESTS)))
unit-asan: $(ASAN_TESTS)
	@$(call two_at_a_time,$^)
unit-tsan: $(TSAN_TESTS)
	@$(call two_at_a_time,$^)
# Only builds them.
.PHONY: unit-asan-built unit-tsan-built
unit-asan-built: $(ASAN_TESTS)
unit-tsan-built: $(TSAN_TESTS)

build/unit/bench/%: build/unit/tests/bench/%.o $(CORE_SRC:%.cc=build/unit/%.o)
	@mkdir -p $(@D)
	$(CXX) $(ENGINE_CXXFLAGS) $^ -lbenchmark -ldl -o $@
.PHONY: engine-bench
engine-bench: $(BENCH_SRC:tests/bench/%.cc=build/unit/bench/%)

# Static: runs on machines that have no SQLite.
build/sqlite_rows: tests/bench/sqlite_rows.c
	@mkdir -p $(@D)
	$(CC) -O2 -static $< -lsqlite3 -lpthread -ldl -lm -o $@

# The floor of row-returning queries: LOAD it by its path.
build/floor.so: build/so/tests/bench/floor/floor.o
	$(CXX) -shared $^ -o $@

include tests/emulated/emulated.mk

# An experiment's answers, where there is no GPU to time it on.
build/emulated-so/bench/%: build/emulated-so/tests/bench/%.cu.o $(EMULATED_SRC:%=build/emulated-so/%.o) $(CORE_SRC:%.cc=build/unit/%.o)
	@mkdir -p $(@D)
	$(CXX) $(EMULATED_SO_FLAGS) $^ -lboost_context -ldl -o $@
.PHONY: experiment-emulated
experiment-emulated: build/emulated-so/bench/primitives_experiment build/emulated-so/bench/join_kernels_experiment
	for experiment in $^; do $$experiment --rows 20000 --reps 1 || exit 1; done

# Not where nothing but checks is asked for: tests/check.sh compiles meanwhile, and a file that is half written is no rule.
ifneq ($(if $(MAKECMDGOALS),$(filter-out %check,$(MAKECMDGOALS)),all),)
-include $(shell find build -name '*.d' 2>/dev/null)
endif

endif
