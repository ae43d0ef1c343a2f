# Warnings of the house, as errors, for our own code. -ffp-contract=off: a fused multiply-add would change bits.
set(SF_WARN -Wall -Wextra -Wconversion -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Werror)
set(SF_FLAGS ${SF_WARN} -ffp-contract=off -fno-math-errno -fno-strict-aliasing
             -ffile-prefix-map=${SF_ROOT}/= -ffile-prefix-map=${CMAKE_BINARY_DIR}/=)
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  list(APPEND SF_FLAGS -Wno-unknown-warning-option -Wno-gnu-zero-variadic-macro-arguments)
endif()
if(SF_SANITIZE)
  list(APPEND SF_FLAGS -Wno-maybe-uninitialized) # gcc warns of what instrumentation hides from it
  add_compile_options(-fsanitize=${SF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${SF_SANITIZE})
endif()
if(SF_FUZZ) # the libraries tell libFuzzer which of their paths an input took
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# A static library of our own code. Includes are rooted at runtime/.
function(sf_library name)
  add_library(${name} STATIC ${ARGN})
  target_compile_options(${name} PRIVATE ${SF_FLAGS})
  target_compile_definitions(${name} PUBLIC _GNU_SOURCE)
  target_include_directories(${name} PUBLIC ${SF_ROOT}/runtime)
endfunction()
