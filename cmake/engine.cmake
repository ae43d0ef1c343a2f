# Engines: steadfast-gen writes kernels and plan.c while CMake configures (so that the list of files is exact), and again
# whenever the generator, a template, a model or a build configuration has changed.
set(SF_GEN_DIR ${CMAKE_BINARY_DIR}/gen-tool)
file(GLOB_RECURSE SF_GEN_INPUTS CONFIGURE_DEPENDS ${SF_ROOT}/gen/*.[ch] ${SF_ROOT}/templates/*
     ${SF_ROOT}/models/*.yaml ${SF_ROOT}/build-configs/*.yaml ${SF_ROOT}/runtime/device/cuda/*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SF_GEN_INPUTS})

set(SF_KERNEL_FLAGS -O3 -ffp-contract=off -fno-math-errno -fno-strict-aliasing -Wall -Wextra -Wshadow -Werror)
# Kernels are inlined and unrolled whole, so instrumenting them takes minutes and gigabytes: under sanitizers they are compiled
# without unrolling, without UBSan, and with AddressSanitizer's checks as calls. The optimisation level changes no bit.
if(SF_SANITIZE)
  list(TRANSFORM SF_KERNEL_FLAGS REPLACE "^-O3$" "-O1")
  list(APPEND SF_KERNEL_FLAGS -DSF_NO_UNROLL -g0 -fno-sanitize=undefined)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND SF_KERNEL_FLAGS "SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(SF_ISA_generic -march=x86-64)
  set(SF_ISA_avx2 -march=x86-64 -mavx2 -mfma)
  set(SF_ISA_avx512 -march=x86-64 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  set(SF_ISA_avx512bf16 ${SF_ISA_avx512} -mavx512bf16)
  set(SF_ISAS generic avx2 avx512 avx512bf16)
else()
  set(SF_ISA_generic "")
  set(SF_ISAS generic)
endif()
if(SF_SANITIZE AND "avx2" IN_LIST SF_ISAS) # one of them is enough there: the release build compares the bits of all
  set(SF_ISAS avx2)
endif()

# The generator itself, built first, without sanitizers.
function(sf_build_generator)
  if(DEFINED SF_GEN_BUILT)
    return()
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SF_ROOT}/gen/tool -B ${SF_GEN_DIR} -G ${CMAKE_GENERATOR}
                          -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_BUILD_TYPE=Release
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${SF_GEN_DIR} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  set(SF_GEN_BUILT 1 PARENT_SCOPE)
endfunction()

# sf_add_kernels(target model config dir): generates into dir and adds an object library `target` of plan.c and the kernels,
# one object per kernel and instruction set. A CUDA engine's kernels are text (sources.c): NVRTC compiles them at start.
function(sf_add_kernels target model config dir)
  sf_build_generator()
  execute_process(COMMAND ${SF_GEN_DIR}/bin/steadfast-gen generate --model models/${model}.yaml
                          --config build-configs/${config}.yaml --out ${dir}
                  WORKING_DIRECTORY ${SF_ROOT} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${SF_ROOT}/build-configs/${config}.yaml cuda REGEX "^backend: *cuda")
  if(cuda)
    add_library(${target} OBJECT ${dir}/plan.c ${dir}/sources.c)
    target_include_directories(${target} PUBLIC ${SF_ROOT}/runtime)
    target_compile_options(${target} PRIVATE ${SF_FLAGS})
    return()
  endif()
  file(GLOB kernels ${dir}/kernels/*.c)
  set(objects "")
  foreach(isa ${SF_ISAS})
    add_library(${target}-${isa} OBJECT ${kernels})
    target_include_directories(${target}-${isa} PRIVATE ${SF_ROOT}/runtime ${SF_ROOT}/templates)
    target_compile_definitions(${target}-${isa} PRIVATE _GNU_SOURCE SF_ISA=${isa})
    target_compile_options(${target}-${isa} PRIVATE ${SF_KERNEL_FLAGS} ${SF_ISA_${isa}})
    list(APPEND objects $<TARGET_OBJECTS:${target}-${isa}>)
  endforeach()
  string(JOIN " " flags ${SF_KERNEL_FLAGS})
  add_library(${target} OBJECT ${dir}/plan.c)
  target_include_directories(${target} PUBLIC ${SF_ROOT}/runtime)
  target_compile_options(${target} PRIVATE ${SF_FLAGS})
  foreach(isa generic avx2 avx512 avx512bf16)
    if(isa IN_LIST SF_ISAS)
      target_compile_definitions(${target} PRIVATE SF_HAVE_${isa}=1)
    endif()
  endforeach()
  target_sources(${target} INTERFACE ${objects})
endfunction()

function(sf_add_engine spec)
  string(REPLACE ":" ";" parts ${spec})
  list(GET parts 0 model)
  list(GET parts 1 config)
  set(name steadfast-${model}-${config})
  sf_add_kernels(${name}-plan ${model} ${config} ${CMAKE_BINARY_DIR}/engines/${model}-${config})
  add_executable(${name} ${SF_ROOT}/runtime/cli/main.c $<TARGET_OBJECTS:${name}-plan>)
  target_compile_options(${name} PRIVATE ${SF_FLAGS})
  target_link_libraries(${name} PRIVATE ${name}-plan sf_cli)
endfunction()
