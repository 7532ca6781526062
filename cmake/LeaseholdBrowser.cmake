# What the portable set needs where emscripten compiles it: fmt from its headers alone, and no threads.
find_path(LEASEHOLD_FMT_HEADERS fmt/core.h PATHS /usr/include /usr/local/include NO_CMAKE_FIND_ROOT_PATH REQUIRED)
# The folder holds nothing else: the headers of this machine's C library are not those of the browser.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fmt)
file(CREATE_LINK ${LEASEHOLD_FMT_HEADERS}/fmt ${PROJECT_BINARY_DIR}/fmt/fmt SYMBOLIC)
add_library(fmt::fmt INTERFACE IMPORTED)
target_include_directories(fmt::fmt SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/fmt)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
add_library(Threads::Threads INTERFACE IMPORTED)
# A size_t has 32 bits there. Numbers of 64 bits that count places in memory are shortened to it.
target_compile_options(leasehold_flags INTERFACE -Wno-shorten-64-to-32)
