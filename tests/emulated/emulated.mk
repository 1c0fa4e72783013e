# The CUDA virtual machine compiled for the host (cuda_runtime.h here tells how):
#
#   make unit-cuda                      its unit tests, the host's code with sanitizers
#   make unit-cuda-tsan                 several sessions at once, with the thread sanitizer
#   make build/emulated/gpuvm_cuda.so   the library, for gpuvm.cuda_library
#
# Included by the Makefile. build/emulated-so/bin/cuda_* are the tests without
# sanitizers, for long random runs.

EMULATED_SRC = $(CUDA_COMPILED_SRC) $(EMULATED_KERNEL_SRC) $(wildcard tests/emulated/*.cc)
EMULATED_TESTS = $(addprefix build/emulated/bin/,$(call programs_of,$(wildcard tests/unit/cuda_*_test.cc),$(TOGETHER_CUDA_TESTS)))
# Of those the programs that hold these tests.
emulated_holding = $(sort $(foreach t,$(1),$(or $(foreach p,$(TOGETHER_CUDA_TESTS),$(if $(filter tests/unit/$(t).cc,$(TOGETHER_$(p))),$(p))),$(t))))

EMULATED_FLAGS = -DGPUVM_EMULATED -Itests/emulated -Icuda -Wno-unknown-pragmas
EMULATED_TEST_FLAGS = $(ASAN_FLAGS) $(EMULATED_FLAGS)
EMULATED_TSAN_FLAGS = $(TSAN_FLAGS) $(EMULATED_FLAGS)
EMULATED_SO_FLAGS = $(GPUVM_CXXFLAGS) $(EMULATED_FLAGS) -O2 -g1 -pthread -fPIC -fvisibility=hidden

# $(1) folder, $(2) flags, $(3) more for the tests themselves, $(4) the flavour whose flags these are, but for EMULATED_FLAGS
define emulated
build/$(1)/%.cu.o: %.cu
	@mkdir -p $$(@D)
	$$(CXX) $(2) -include cuda_runtime.h -x c++ -c $$< -o $$@
build/$(1)/%.cc.o: %.cc
	@mkdir -p $$(@D)
	$$(CXX) $(2) -c $$< -o $$@
build/$(1)/tests/unit/%.cc.o: tests/unit/%.cc build/$(4)/precompiled.h.gch
	@mkdir -p $$(@D)
	$$(CXX) $(2) $(3) -include build/$(4)/precompiled.h -c $$< -o $$@
$$(TOGETHER_CUDA_TESTS:%=build/$(1)/tests/unit/%.cc.o): build/$(1)/tests/unit/%.cc.o: build/together/%.cc build/$(4)/precompiled.h.gch
	@mkdir -p $$(@D)
	$$(CXX) $(2) $(3) -Wno-subobject-linkage -include build/$(4)/precompiled.h -c $$< -o $$@
endef
$(eval $(call precompiled,emulated-so,$$(EMULATED_SO_FLAGS),tests/unit))
$(eval $(call emulated,emulated,$$(EMULATED_TEST_FLAGS),$$(SANITIZED_TEST_FLAGS),asan))
$(eval $(call emulated,emulated-so,$$(EMULATED_SO_FLAGS),,emulated-so))
$(eval $(call emulated,emulated-tsan,$$(EMULATED_TSAN_FLAGS),$$(SANITIZED_TEST_FLAGS),tsan))

# Kernels as the library has them, and the fibers that they run on: compute-sanitizer looks at those. All that runs on the host is under the sanitizers.
EMULATED_KERNEL_OBJS = $(patsubst %,build/emulated-so/%.o,$(EMULATED_KERNEL_SRC) tests/emulated/emulated_block.cc)
EMULATED_ASAN_OBJS = $(patsubst %,build/emulated/%.o,$(CUDA_COMPILED_SRC) tests/emulated/emulated_runtime.cc) $(EMULATED_KERNEL_OBJS)
build/emulated/bin/%: $(EMULATED_ASAN_OBJS) $(CORE_SRC:%.cc=build/asan/%.o) $(UNIT_SHARED:%=build/asan/%.o) build/emulated/tests/unit/%.cc.o
	@mkdir -p $(@D)
	$(CXX) $(EMULATED_TEST_FLAGS) $^ -lgtest -lgtest_main -lboost_context -ldl -o $@

build/emulated-so/bin/%: build/emulated-so/tests/unit/%.cc.o $(EMULATED_SRC:%=build/emulated-so/%.o) $(CORE_SRC:%.cc=build/unit/%.o) $(UNIT_SHARED:%=build/unit/%.o)
	@mkdir -p $(@D)
	$(CXX) $(EMULATED_SO_FLAGS) $^ -lgtest -lgtest_main -lboost_context -ldl -o $@

EMULATED_TSAN_OBJS = $(patsubst %,build/emulated-tsan/%.o,$(CUDA_COMPILED_SRC) tests/emulated/emulated_runtime.cc) $(EMULATED_KERNEL_OBJS)
build/emulated-tsan/bin/%: $(EMULATED_TSAN_OBJS) $(CORE_SRC:%.cc=build/tsan/%.o) $(UNIT_SHARED:%=build/tsan/%.o) build/emulated-tsan/tests/unit/%.cc.o
	@mkdir -p $(@D)
	$(CXX) $(EMULATED_TSAN_FLAGS) $^ -lgtest -lgtest_main -lboost_context -ldl -o $@

build/emulated/gpuvm_cuda.so: $(EMULATED_SRC:%=build/emulated-so/%.o) $(CUDA_CORE_SRC:%.cc=build/core/%.o)
	@mkdir -p $(@D)
	$(CXX) -shared $(EMULATED_SO_FLAGS) $^ -Wl,--no-undefined,--version-script=cuda/exports.map -lboost_context -ldl -o $@

.PHONY: unit-cuda unit-cuda-built unit-cuda-tsan
unit-cuda-tsan: $(addprefix build/emulated-tsan/bin/,$(call emulated_holding,cuda_runtime_test cuda_delta_test cuda_stage_test cuda_set_test cuda_join_index_test))
	for test in $^; do $$test --gtest_brief=1 --gtest_filter='*SeveralSessions*' || exit 1; done
unit-cuda-built: $(EMULATED_TESTS)
# The job runtime with streams that run late: those that run at once are the server's suites'.
EMULATED_LATE = $(addprefix build/emulated/bin/,$(call emulated_holding,cuda_runtime_test cuda_stage_test cuda_set_test cuda_window_test))
unit-cuda: $(EMULATED_TESTS)
	@$(call two_at_a_time,$(filter-out $(EMULATED_LATE),$^) $(EMULATED_LATE:%=%.late))
