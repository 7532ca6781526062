# One library per room. Every target sees the tree under the name that installed headers have, <leasehold/room/x.h>,
# through one link in the build folder; so a host's own raft/ cannot be met by accident.

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/leasehold SYMBOLIC)

add_library(leasehold_flags INTERFACE)
target_include_directories(leasehold_flags INTERFACE ${PROJECT_BINARY_DIR}/include)
target_compile_options(leasehold_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
  -Wold-style-cast $<$<BOOL:${LEASEHOLD_WERROR}>:-Werror>)
# Position-independent code is as fast as other code only if nobody may replace our functions while a program is loaded.
target_compile_options(leasehold_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
# gcc 12 sees uninitialized members in every variant that is moved, as soon as it inlines enough of the move.
target_compile_options(leasehold_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
if(LEASEHOLD_SMALL)
  # Each function is a section, and the linker leaves out those that nobody needs. Addresses that are known but for where the
  # program is loaded take a bit each, not 24 bytes.
  target_compile_options(leasehold_flags INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(leasehold_flags INTERFACE -Wl,--gc-sections -Wl,-z,pack-relative-relocs)
endif()
if(LEASEHOLD_SANITIZE)
  target_compile_options(leasehold_flags INTERFACE -fsanitize=${LEASEHOLD_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(leasehold_flags INTERFACE -fsanitize=${LEASEHOLD_SANITIZE})
  if(LEASEHOLD_SANITIZE MATCHES thread)
    # The thread sanitizer does not understand fences; asio does without where it is told to.
    target_compile_definitions(leasehold_flags INTERFACE ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()

# Code that makes a bug in it hard to use. The compiler's flags are for our own sources; what is linked is the host's to decide.
if(LEASEHOLD_HARDENED)
  include(CheckCXXCompilerFlag)
  # The last two mark where an indirect jump may land: x86, and 64-bit ARM.
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "LEASEHOLD_HAS${flag}" known)
    check_cxx_compiler_flag("-Werror ${flag}" ${known})
    if(${known})
      target_compile_options(leasehold_flags INTERFACE ${flag})
    endif()
  endforeach()
  # It needs an optimiser, and hides from a sanitizer what it checks itself.
  if(NOT LEASEHOLD_SANITIZE)
    foreach(type DEBUG RELEASE RELWITHDEBINFO MINSIZEREL)
      if("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" MATCHES "-O([1-9s]|fast)" AND NOT CMAKE_CXX_FLAGS MATCHES "_FORTIFY_SOURCE")
        target_compile_options(leasehold_flags INTERFACE $<$<CONFIG:${type}>:-U_FORTIFY_SOURCE>
          $<$<CONFIG:${type}>:-D_FORTIFY_SOURCE=2>)
        string(TOUPPER "${CMAKE_BUILD_TYPE}" build)
        if(build STREQUAL type)
          set(LEASEHOLD_FORTIFIED ON)
        endif()
      endif()
    endforeach()
  endif()
  if(PROJECT_IS_TOP_LEVEL)
    include(CheckPIESupported)
    check_pie_supported(LANGUAGES CXX)  # from here on, CMAKE_POSITION_INDEPENDENT_CODE also links with -pie
    target_link_options(leasehold_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  endif()
endif()

# A fifth of the time of the usual linker, for each of some ninety programs. mold 1.10 packs addresses without the mark that the
# C library wants to see then, and a program without it does not start.
find_program(LEASEHOLD_MOLD mold)
if(LEASEHOLD_MOLD AND PROJECT_IS_TOP_LEVEL AND NOT EMSCRIPTEN AND NOT LEASEHOLD_SMALL)
  target_link_options(leasehold_flags INTERFACE -fuse-ld=mold)
endif()

if(EMSCRIPTEN)
  include(LeaseholdBrowser)
else()
  find_package(Threads REQUIRED)
  find_package(fmt CONFIG REQUIRED)
endif()
# Headers alone, which a library of ours may use and its host does not see. They need not be where the compiler looks by itself.
if(NOT LEASEHOLD_PORTABLE_ONLY)
  find_path(LEASEHOLD_ASIO asio.hpp REQUIRED)
  find_path(LEASEHOLD_JSON nlohmann/json.hpp REQUIRED)
  target_include_directories(leasehold_flags SYSTEM INTERFACE ${LEASEHOLD_ASIO} ${LEASEHOLD_JSON})
endif()

# leasehold_precompile(OWNER LINK x HEADERS <y.h>): compiles headers once, those of the standard library and HEADERS, for
# leasehold_use_precompiled(). No source may rely on it: the preset dev does without.
function(leasehold_precompile owner)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${owner}.cc CONTENT "// Owns a precompiled header.\n")
  add_library(${owner} OBJECT ${PROJECT_BINARY_DIR}/${owner}.cc)
  target_link_libraries(${owner} PRIVATE leasehold_flags ${ARG_LINK})
  target_compile_options(${owner} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  target_precompile_headers(${owner} PRIVATE ${ARG_HEADERS} <algorithm> <array> <atomic> <charconv> <chrono> <cstddef>
    <cstdint> <cstdio> <cstring> <deque> <functional> <limits> <map> <memory> <mutex> <optional> <set> <string>
    <string_view> <system_error> <thread> <utility> <variant> <vector>)
endfunction()

# `target` reads what `owner` precompiled.
function(leasehold_use_precompiled target owner)
  if(TARGET ${owner})
    target_precompile_headers(${target} REUSE_FROM ${owner})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
endfunction()

if(LEASEHOLD_PCH)
  leasehold_precompile(leasehold_precompiled)
  if(LEASEHOLD_SMALL)
    leasehold_precompile(leasehold_precompiled_small)
    target_compile_options(leasehold_precompiled_small PRIVATE -Os)
  endif()
endif()

# Batches of sources in one translation unit, for who compiles everything once: half the time. A name in an anonymous namespace
# then has to be the only one in its target, or its source stands under APART; APART ALL: none of them is in a batch.
function(leasehold_batches target)
  if(LEASEHOLD_BATCHES AND NOT "${ARGN}" STREQUAL "ALL")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${LEASEHOLD_BATCH})
    if(ARGN)
      set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
endfunction()

# leasehold_room(NAME [PLAIN] [COLD] SOURCES a.cc b.cc APART b.cc DEPENDS base lease LINK RocksDB::rocksdb)
# Makes the library leasehold_NAME. DEPENDS are rooms, LINK are other targets, linked privately. A room writes its text with fmt;
# a PLAIN one has nothing but the standard library. No request of a client and no message of a peer waits for a COLD one:
# LEASEHOLD_SMALL has it optimised for size.
function(leasehold_room name)
  cmake_parse_arguments(ARG "PLAIN;COLD" "" "SOURCES;APART;DEPENDS;LINK" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND leasehold_)
  if(ARG_SOURCES)
    if(NOT ARG_PLAIN)
      list(APPEND ARG_LINK fmt::fmt)
    endif()
    add_library(leasehold_${name} STATIC ${ARG_SOURCES})
    leasehold_batches(leasehold_${name} ${ARG_APART})
    target_link_libraries(leasehold_${name} PUBLIC leasehold_flags ${ARG_DEPENDS} PRIVATE ${ARG_LINK})
    if(LEASEHOLD_SMALL AND ARG_COLD)
      target_compile_options(leasehold_${name} PRIVATE -Os)
      leasehold_use_precompiled(leasehold_${name} leasehold_precompiled_small)
    else()
      leasehold_use_precompiled(leasehold_${name} leasehold_precompiled)
    endif()
  else()
    add_library(leasehold_${name} INTERFACE)
    target_link_libraries(leasehold_${name} INTERFACE leasehold_flags ${ARG_DEPENDS} ${ARG_LINK})
  endif()
endfunction()

# Tests that kill processes, but no machines, lose nothing on a file system in memory, and sync there at no cost. The tests of
# storage/ and of real processes stay on a disk.
set(LEASEHOLD_TEST_ENVIRONMENT "")
if(EXISTS /dev/shm)
  execute_process(COMMAND df --output=avail --block-size=1M /dev/shm OUTPUT_VARIABLE free ERROR_QUIET)
  string(REGEX MATCH "[0-9]+" free "${free}")
  if(free GREATER_EQUAL 1024)
    set(LEASEHOLD_TEST_ENVIRONMENT "TMPDIR=/dev/shm;")
  endif()
endif()

# The programs of the tests that `make check` runs: those with the label quick.
add_custom_target(quick_tests)

# leasehold_test(NAME [ON_DISK] [COMPUTES] [WAITS] SOURCES a_test.cc APART b_test.cc DEPENDS raft LINK x TIMEOUT 300 LABELS sim)
# Makes one GoogleTest program NAME and one CTest test of the same name. COMPUTES: the speed of the test's own code decides how
# long it takes. WAITS: it is idle most of its time. `make check` runs it, unless it has a TIMEOUT of its own: that is for tests
# that take more than a few seconds.
function(leasehold_test name)
  cmake_parse_arguments(ARG "ON_DISK;COMPUTES;WAITS" "TIMEOUT" "SOURCES;APART;DEPENDS;LINK;LABELS" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND leasehold_)
  add_executable(${name} ${ARG_SOURCES})
  leasehold_batches(${name} ${ARG_APART})
  target_link_libraries(${name} PRIVATE leasehold_flags ${ARG_DEPENDS} ${ARG_LINK} GTest::gmock GTest::gtest_main)
  # The code of most tests runs once: the optimiser costs a quarter of its compilation, and it is the rooms that are tested.
  if(LEASEHOLD_BATCHES AND NOT ARG_COMPUTES)
    target_compile_options(${name} PRIVATE -O0 -Wno-cpp)
    leasehold_use_precompiled(${name} leasehold_precompiled_tests_plain)
  else()
    leasehold_use_precompiled(${name} leasehold_precompiled_tests)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
    list(APPEND ARG_LABELS quick)
    add_dependencies(quick_tests ${name})
  endif()
  set(environment "${LEASEHOLD_TEST_ENVIRONMENT}")
  if(ARG_ON_DISK)
    set(environment "")
  endif()
  # `make test` has more than two slots for each core, since the tests of processes mostly wait.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} PROCESSORS $<IF:$<BOOL:${ARG_WAITS}>,1,2> LABELS "${ARG_LABELS}"
    ENVIRONMENT "${environment}TSAN_OPTIONS=ignore_noninstrumented_modules=1 halt_on_error=1;UBSAN_OPTIONS=print_stacktrace=1")
endfunction()
