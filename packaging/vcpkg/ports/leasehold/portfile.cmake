# Builds the tree that this port stands in, which is in no registry: vcpkg install leasehold --overlay-ports=TREE/packaging/vcpkg/ports
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
if(NOT EXISTS "${SOURCE_PATH}/cmake/LeaseholdPackage.cmake")
  message(FATAL_ERROR "${SOURCE_PATH} is not the source of Leasehold: use this port where it stands in the source, as an overlay")
endif()

# The C++ library is archives; the C interface, a shared library, is not in this port.
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    kv LEASEHOLD_KV
    program LEASEHOLD_BUILD_PROGRAM
    tools LEASEHOLD_TOOLS
)
vcpkg_find_acquire_program(PKGCONFIG)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DLEASEHOLD_BUILD_TESTS=OFF
    -DLEASEHOLD_BUILD_BENCH=OFF
    -DLEASEHOLD_INSTALL=ON
    -DLEASEHOLD_C=OFF
    "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}"
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME Leasehold CONFIG_PATH lib/cmake/Leasehold)
vcpkg_fixup_pkgconfig()
if("program" IN_LIST FEATURES)
  # The first looks for the second beside itself.
  vcpkg_copy_tools(TOOL_NAMES leasehold leasehold-deputy AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
