# What a host links: Leasehold::core, Leasehold::node, Leasehold::kv, Leasehold::client and Leasehold::local. Each is one archive of
# the rooms that it stands on, less those of the components below it, so that a host has five names to know and not twenty.
#
#   core   base, lease, grant, raft, placement: no dependency but the standard library
#   tls    who the other side of a connection is: below node and client, which bring it; it has no header for hosts
#   node   a running replica: the driver, storage and transport
#   kv     the key-value store that ships
#   client the side of clients: the holder of a lease, its locks, and a group reached by its client ports
#   local  leases and keys of a kv store in the same process
#   c      the C interface: a shared library by itself
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# _leasehold_walk(TARGET ROOMS LINKS): adds the room TARGET and all that it stands on to ROOMS, and what is not
# Leasehold's to LINKS.
function(_leasehold_walk target rooms_out links_out)
  set(rooms ${${rooms_out}})
  set(links ${${links_out}})
  if(NOT target IN_LIST rooms)
    list(APPEND rooms ${target})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL INTERFACE_LIBRARY)
      get_target_property(needs ${target} INTERFACE_LINK_LIBRARIES)
    else()
      get_target_property(needs ${target} LINK_LIBRARIES)
    endif()
    foreach(need IN LISTS needs)
      if(need STREQUAL leasehold_flags OR need MATCHES "-NOTFOUND$")
        continue()
      elseif(need MATCHES "^leasehold_")
        _leasehold_walk(${need} rooms links)
      elseif(NOT need IN_LIST links)
        list(APPEND links ${need})
      endif()
    endforeach()
  endif()
  set(${rooms_out} ${rooms} PARENT_SCOPE)
  set(${links_out} ${links} PARENT_SCOPE)
endfunction()

# _leasehold_packages(LINKS PACKAGES): the arguments of the find_package calls that bring LINKS.
function(_leasehold_packages links packages_out)
  set(packages)
  foreach(link IN LISTS links)
    if(link MATCHES "^RocksDB::")
      list(APPEND packages "RocksDB CONFIG")
    elseif(link MATCHES "^protobuf::")
      list(APPEND packages "Protobuf MODULE")
    elseif(link MATCHES "^fmt::")
      list(APPEND packages "fmt CONFIG")
    elseif(link MATCHES "^OpenSSL::")
      list(APPEND packages "OpenSSL MODULE")
    elseif(link MATCHES "^Threads::")
      list(APPEND packages "Threads MODULE")
    else()
      message(FATAL_ERROR "A packaged room links ${link}: say here how a host of the library finds it")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES packages)
  set(${packages_out} ${packages} PARENT_SCOPE)
endfunction()

# The sections of public_headers.txt as LEASEHOLD_HEADERS_core and so on.
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt lines REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt)
foreach(line IN LISTS lines)
  if(line MATCHES "^\\[(.*)\\]$")
    set(section ${CMAKE_MATCH_1})
  else()
    list(APPEND LEASEHOLD_HEADERS_${section} ${line})
  endif()
endforeach()

set(LEASEHOLD_COMPONENTS)
set(LEASEHOLD_PACKAGED_ROOMS)

# leasehold_component(NAME ROOMS rooms DEPENDS components): DEPENDS lists every component below it, the lowest first.
function(leasehold_component name)
  cmake_parse_arguments(ARG "" "" "ROOMS;DEPENDS" ${ARGN})
  set(target leasehold_component_${name})
  set(rooms)
  set(links)
  foreach(room IN LISTS ARG_ROOMS)
    _leasehold_walk(leasehold_${room} rooms links)
  endforeach()
  list(REMOVE_ITEM rooms ${LEASEHOLD_PACKAGED_ROOMS})
  add_library(${target} STATIC)
  foreach(room IN LISTS rooms)
    get_target_property(type ${room} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      get_target_property(sources ${room} SOURCES)
      list(FILTER sources INCLUDE REGEX "TARGET_OBJECTS")
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${room}> ${sources})
    endif()
  endforeach()
  add_library(Leasehold::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} OUTPUT_NAME leasehold_${name} LINKER_LANGUAGE CXX)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(LEASEHOLD_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${LEASEHOLD_SANITIZE})
  endif()
  foreach(component IN LISTS ARG_DEPENDS)
    target_link_libraries(${target} PUBLIC leasehold_component_${component})
  endforeach()
  _leasehold_packages("${links}" packages)
  foreach(package IN LISTS packages)
    separate_arguments(package)
    find_package(${package} REQUIRED)
  endforeach()
  target_link_libraries(${target} PRIVATE ${links})

  list(APPEND LEASEHOLD_COMPONENTS ${name})
  list(APPEND LEASEHOLD_PACKAGED_ROOMS ${rooms})
  set(LEASEHOLD_COMPONENTS ${LEASEHOLD_COMPONENTS} PARENT_SCOPE)
  set(LEASEHOLD_PACKAGED_ROOMS ${LEASEHOLD_PACKAGED_ROOMS} PARENT_SCOPE)
  set(LEASEHOLD_NEEDS_${name} ${ARG_DEPENDS} PARENT_SCOPE)
  set(LEASEHOLD_LINKS_${name} ${links} PARENT_SCOPE)
  set(LEASEHOLD_PACKAGES_${name} ${packages} PARENT_SCOPE)
  if(LEASEHOLD_INSTALL)
    install(TARGETS ${target} EXPORT Leasehold_${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name})
    install(EXPORT Leasehold_${name} NAMESPACE Leasehold:: FILE Leasehold-${name}.cmake
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Leasehold COMPONENT ${name})
    foreach(header IN LISTS LEASEHOLD_HEADERS_${name})
      get_filename_component(room ${header} DIRECTORY)
      install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leasehold/${room}
        COMPONENT ${name})
    endforeach()
  endif()
endfunction()

leasehold_component(core ROOMS raft grant placement)
if(NOT LEASEHOLD_PORTABLE_ONLY)
  leasehold_component(tls ROOMS tls DEPENDS core)
  leasehold_component(node ROOMS node adapters storage_memory DEPENDS core tls)
  if(LEASEHOLD_KV)
    leasehold_component(kv ROOMS kv kv_rocksdb DEPENDS core tls node)
  endif()
  leasehold_component(client ROOMS client DEPENDS core tls)
endif()
if(LEASEHOLD_KV AND NOT LEASEHOLD_PORTABLE_ONLY)
  leasehold_component(local ROOMS kv_local DEPENDS core tls node kv client)
endif()
# The C interface: a shared library, which needs nothing of the others.
if(TARGET leasehold_c_shared)
  list(APPEND LEASEHOLD_COMPONENTS c)
endif()
if(NOT LEASEHOLD_INSTALL)
  return()
endif()
if(TARGET leasehold_c_shared)
  install(TARGETS leasehold_c_shared EXPORT Leasehold_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c
    NAMELINK_COMPONENT c_development)
  install(EXPORT Leasehold_c NAMESPACE Leasehold:: FILE Leasehold-c.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Leasehold COMPONENT c_development)
  install(FILES ${LEASEHOLD_HEADERS_c} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leasehold/c COMPONENT c_development)
endif()

# ---- The CMake package ----

set(LEASEHOLD_FINDS)
foreach(component IN LISTS LEASEHOLD_COMPONENTS)
  string(APPEND LEASEHOLD_FINDS "set(_leasehold_needs_${component} ${LEASEHOLD_NEEDS_${component}})\n"
    "macro(_leasehold_find_${component})\n")
  foreach(package IN LISTS LEASEHOLD_PACKAGES_${component})
    string(APPEND LEASEHOLD_FINDS "  find_dependency(${package})\n")
  endforeach()
  string(APPEND LEASEHOLD_FINDS "endmacro()\n")
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Leasehold)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/LeaseholdConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/LeaseholdConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/LeaseholdConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/LeaseholdConfig.cmake
  ${PROJECT_BINARY_DIR}/package/LeaseholdConfigVersion.cmake DESTINATION ${package_dir} COMPONENT core)

# ---- pkg-config ----

# The files find the prefix from where they lie, so an installed tree may be moved.
file(RELATIVE_PATH LEASEHOLD_PC_UP /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" LEASEHOLD_PC_UP ${LEASEHOLD_PC_UP})
set(LEASEHOLD_PC_FLAGS)
if(LEASEHOLD_SANITIZE)
  set(LEASEHOLD_PC_FLAGS "-fsanitize=${LEASEHOLD_SANITIZE}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/leasehold-core.pc.in ${PROJECT_BINARY_DIR}/package/leasehold-core.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/leasehold-core.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT core)
# leasehold-node, leasehold (that is kv), leasehold-client and so on: each names those below it, and its own packages.
foreach(pair "tls leasehold-tls leasehold-core" "node leasehold-node leasehold-tls" "kv leasehold leasehold-node"
    "client leasehold-client leasehold-tls"
    "c leasehold-c"
    "local leasehold-local leasehold leasehold-client")
  separate_arguments(pair)
  list(POP_FRONT pair component file)
  if(component IN_LIST LEASEHOLD_COMPONENTS)
    set(requires ${pair})
    if("${LEASEHOLD_LINKS_${component}}" MATCHES "RocksDB::")
      list(APPEND requires rocksdb)
    endif()
    if("${LEASEHOLD_LINKS_${component}}" MATCHES "protobuf::")
      list(APPEND requires protobuf)
    endif()
    if("${LEASEHOLD_LINKS_${component}}" MATCHES "fmt::")
      list(APPEND requires fmt)
    endif()
    if("${LEASEHOLD_LINKS_${component}}" MATCHES "OpenSSL::")
      list(APPEND requires openssl)
    endif()
    list(JOIN requires ", " LEASEHOLD_PC_REQUIRES_${component})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${file}.pc.in ${PROJECT_BINARY_DIR}/package/${file}.pc @ONLY)
    string(REGEX REPLACE "^c$" "c_development" part ${component})
    install(FILES ${PROJECT_BINARY_DIR}/package/${file}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
      COMPONENT ${part})
  endif()
endforeach()

# ---- The program ----

# All that `cmake --install` takes.
add_custom_target(leasehold_package)
foreach(component IN LISTS LEASEHOLD_COMPONENTS)
  if(component STREQUAL c)
    add_dependencies(leasehold_package leasehold_c_shared)
  else()
    add_dependencies(leasehold_package leasehold_component_${component})
  endif()
endforeach()
if(TARGET leasehold)
  add_dependencies(leasehold_package leasehold leasehold_deputy_program)
  install(TARGETS leasehold leasehold_deputy_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  install(FILES ${PROJECT_SOURCE_DIR}/deputy/leasehold-deputy.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
endif()
# The page of the lab, for `leasehold lab`, where `make lab` has built it.
set(LEASEHOLD_LAB_PAGE ${PROJECT_SOURCE_DIR}/build/lab/lease-lab.html CACHE FILEPATH "The page of the lease lab to install, if it is there")
if(TARGET leasehold)
  install(FILES ${LEASEHOLD_LAB_PAGE} DESTINATION ${CMAKE_INSTALL_DATADIR}/leasehold COMPONENT program OPTIONAL)
endif()
if(TARGET leasehold_manual)
  add_dependencies(leasehold_package leasehold_manual)
  install(FILES ${LEASEHOLD_MANUAL_DIR}/leasehold.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  install(FILES ${LEASEHOLD_MANUAL_DIR}/leasehold COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${LEASEHOLD_MANUAL_DIR}/_leasehold COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${LEASEHOLD_MANUAL_DIR}/leasehold.fish COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

if(LEASEHOLD_DEBIAN)
  include(LeaseholdDebian)
endif()
