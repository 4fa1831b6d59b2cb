# Helpers that give every target the project's warnings, sanitizers and include layout.

add_library(msa_options INTERFACE)
target_compile_options(msa_options INTERFACE
  -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror=return-type -Werror=unused-result -fvisibility=hidden
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety -Werror=thread-safety>)
set(MSA_FUZZING OFF)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND MSA_SANITIZE MATCHES "address")
  set(MSA_FUZZING ON)
endif()
# ENVIRONMENT of tests that meet the leaks of tests/support/library_leaks.supp.
set(MSA_LIBRARY_LEAKS)
if(MSA_SANITIZE MATCHES "address" AND MSA_BUILD_TESTS)
  find_program(MSA_SYMBOLIZER NAMES llvm-symbolizer-14 llvm-symbolizer REQUIRED)
  set(MSA_LIBRARY_LEAKS ASAN_SYMBOLIZER_PATH=${MSA_SYMBOLIZER} ASAN_OPTIONS=fast_unwind_on_malloc=0
    LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/library_leaks.supp:print_suppressions=0)
endif()
if(MSA_SANITIZE)
  target_compile_options(msa_options INTERFACE -fsanitize=${MSA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(msa_options INTERFACE -fsanitize=${MSA_SANITIZE})
  # Links a test program two to five times as fast as the default linker.
  find_program(MSA_LLD ld.lld-14)
  if(MSA_LLD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_link_options(msa_options INTERFACE -fuse-ld=lld-14)
  endif()
endif()

# msa_compile_together(NAME): the compiler takes up to eight files of the target at a time. Most of its work is the templates that they
# share. The release build of libraries and daemons never does so: it compiles each file with what it includes itself, and so
# finds the missing include.
function(msa_compile_together name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${MSA_COMPILE_TOGETHER} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# msa_compile_alone(FILES...): of this folder's targets; for those with names of their own that their neighbours have, too.
function(msa_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# msa_add_library(NAME SOURCES a.cc... [PUBLIC libs] [PRIVATE libs])
# A static library whose public include root is ./include and whose private one is ./src.
function(msa_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE msa_options ${arg_PRIVATE})
  if(MSA_FUZZING)
    # Else the fuzzers would not see which inputs lead deeper into the library.
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(MSA_SANITIZE)
    msa_compile_together(${name})
  endif()
endfunction()

# msa_add_header_library(NAME [LINK libs]): headers only, include root ./include.
function(msa_add_header_library name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_library(${name} INTERFACE)
  target_include_directories(${name} INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/include)
  target_link_libraries(${name} INTERFACE ${arg_LINK})
endfunction()

# msa_add_executable(NAME SOURCES a.cc... LINK libs...): installed into bin.
function(msa_add_executable name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE msa_options ${arg_LINK})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# What every test program may include of tests/support without linking it: scratch_directory.h, eventually.h, and with
# msa_process run_until.h.
set(MSA_TEST_SUPPORT_INCLUDE ${CMAKE_SOURCE_DIR}/tests/support/include)

# msa_add_test(NAME SOURCES a_test.cc... LINK libs... [LABELS l...] [TIMEOUT s] [SERIAL] [ENVIRONMENT k=v...])
# One GoogleTest program, one ctest entry per test case, named PROGRAM/Suite.Case. SERIAL: one entry for the whole
# program, not beside another such; for programs whose suites share one local system. A virtual cluster may be up
# meanwhile (RESOURCE_LOCK hosts): each of the two mostly waits.
# A case that skips itself makes its entry "Skipped", which deploy/test takes for a failure.
# A program that links rapidcheck runs with one fixed seed, joined to the RC_PARAMS of its ENVIRONMENT: what fails, fails
# again. Random seeds are properties_soak's.
# Labels in use: unit, integration, e2e, soak, lint, wire, jobd, core.
function(msa_add_test name)
  cmake_parse_arguments(arg "SERIAL" "TIMEOUT" "SOURCES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 180)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE msa_options ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${MSA_TEST_SUPPORT_INCLUDE})
  # What is tested is optimised as the build type says. The test itself is not: compiling it takes longer than running it.
  target_compile_options(${name} PRIVATE -O0)
  msa_compile_together(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  msa_note_test_target(${name} ${arg_LABELS})
  if("rapidcheck" IN_LIST arg_LINK)
    msa_fix_seed(${name} arg_ENVIRONMENT)
  endif()
  if(arg_SERIAL)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK local_system TIMEOUT ${arg_TIMEOUT}
      SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]" LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}")
    return()
  endif()
  # PRE_TEST: a program that is not built yet (only one target asked for) does not stop the build.
  gtest_discover_tests(${name} TEST_PREFIX ${name}/ DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
    PROPERTIES TIMEOUT ${arg_TIMEOUT} TEST_LIST ${name}_cases)
  # gtest_discover_tests flattens lists inside PROPERTIES (a second label is lost); ctest reads this file after its own.
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
  file(WRITE ${file} "foreach(case IN LISTS ${name}_cases)
  set_tests_properties(\${case} PROPERTIES LABELS [==[${arg_LABELS}]==] ENVIRONMENT [==[${arg_ENVIRONMENT}]==])
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# msa_fix_seed(NAME LIST): adds the seed to the RC_PARAMS in the list of NAME=VALUE, and notes the program and its other
# parameters for properties_soak.
function(msa_fix_seed name list)
  set(environment ${${list}})
  set(given ${environment})
  list(FILTER given INCLUDE REGEX "^RC_PARAMS=")
  list(FILTER environment EXCLUDE REGEX "^RC_PARAMS=")
  list(LENGTH given count)
  if(count GREATER 1)
    message(FATAL_ERROR "${name}: RC_PARAMS stands ${count} times in ENVIRONMENT, expected one with all parameters")
  endif()
  string(REGEX REPLACE "^RC_PARAMS=" "" parameters "${given}")
  if(parameters MATCHES "seed=")
    message(FATAL_ERROR "${name}: RC_PARAMS holds a seed ('${parameters}'); leave it out, msa_add_test gives one")
  endif()
  set_property(GLOBAL APPEND PROPERTY MSA_PROPERTY_PARAMETERS "${name}:${parameters}")
  string(STRIP "${parameters} seed=1" parameters)
  set(${list} ${environment} "RC_PARAMS=${parameters}" PARENT_SCOPE)
endfunction()

# Keeps who has which label, so that one target can build a label's programs: see msa_finish_tests.
function(msa_note_test_target name)
  foreach(label IN LISTS ARGN)
    set_property(GLOBAL APPEND PROPERTY MSA_TESTS_${label} ${name})
  endforeach()
endfunction()

# Called once, after the last test: the targets that deploy/test builds in the sanitizer builds.
#   sanitizer_tests   every test program labelled unit, jobd or wire, and the fuzzers
#   core_tests        every test program labelled core
# and properties_soak (label soak): every program with properties, with random seeds.
function(msa_finish_tests)
  set(sanitizer)
  foreach(label unit jobd wire)
    get_property(names GLOBAL PROPERTY MSA_TESTS_${label})
    list(APPEND sanitizer ${names})
  endforeach()
  get_property(fuzzers GLOBAL PROPERTY MSA_FUZZERS)
  get_property(core GLOBAL PROPERTY MSA_TESTS_core)
  add_custom_target(sanitizer_tests)
  add_custom_target(core_tests)
  list(REMOVE_DUPLICATES sanitizer)
  foreach(name IN LISTS sanitizer fuzzers)
    add_dependencies(sanitizer_tests ${name})
  endforeach()
  foreach(name IN LISTS core)
    add_dependencies(core_tests ${name})
  endforeach()
  get_property(properties GLOBAL PROPERTY MSA_PROPERTY_PARAMETERS)
  add_test(NAME properties_soak
    COMMAND ${CMAKE_SOURCE_DIR}/tests/support/properties_soak.sh ${CMAKE_BINARY_DIR}/tests ${properties})
  set_tests_properties(properties_soak PROPERTIES LABELS soak TIMEOUT 3600)
endfunction()

# msa_add_fuzzer(NAME SOURCES a_fuzz.cc... LINK libs... [INCLUDE private folders...]): clang builds with libFuzzer, into
# ${build}/fuzz; nothing elsewhere.
function(msa_add_fuzzer name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;INCLUDE" ${ARGN})
  if(NOT MSA_FUZZING)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE msa_options ${arg_LINK})
  target_include_directories(${name} PRIVATE ${arg_INCLUDE})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  set_property(GLOBAL APPEND PROPERTY MSA_FUZZERS ${name})
endfunction()
