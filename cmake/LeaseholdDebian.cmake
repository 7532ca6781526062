# Debian packages, by `make packages`: leasehold (the program, its unit and settings), libleasehold0 (the C interface)
# and libleasehold-dev (what a program links); with each its debug symbols.
set(packaging ${PROJECT_SOURCE_DIR}/packaging/debian)

# The newest commit dates what has a date, so that the same source gives the same packages.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%ct OUTPUT_VARIABLE epoch
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(ENV{SOURCE_DATE_EPOCH} ${epoch})
  endif()
endif()
string(TIMESTAMP LEASEHOLD_DEBIAN_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(LEASEHOLD_DEBIAN_REVISION 1 CACHE STRING "Revision of the Debian packages")
set(LEASEHOLD_DEBIAN_MAINTAINER "The authors of Leasehold <leasehold@packages.example.org>" CACHE STRING
  "Maintainer of the Debian packages")

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/package/changelog.Debian @ONLY CONTENT
"leasehold (${PROJECT_VERSION}-${LEASEHOLD_DEBIAN_REVISION}) unstable; urgency=medium

  * Built from its source; changelog.gz says what is new.

 -- ${LEASEHOLD_DEBIAN_MAINTAINER}  ${LEASEHOLD_DEBIAN_DATE}
")
# gzip's own date would differ each time.
foreach(pair "package/changelog.Debian ${PROJECT_BINARY_DIR}/package/changelog.Debian"
    "package/changelog ${PROJECT_SOURCE_DIR}/CHANGELOG.md")
  separate_arguments(pair)
  list(GET pair 0 name)
  list(GET pair 1 source)
  execute_process(COMMAND gzip -9nc ${source} OUTPUT_FILE ${PROJECT_BINARY_DIR}/${name}.gz COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# CPack puts the components of a group into one package.
foreach(pair "program leasehold" "c libleasehold0" "core libleasehold-dev")
  separate_arguments(pair)
  list(GET pair 0 component)
  list(GET pair 1 package)
  install(FILES ${packaging}/copyright ${PROJECT_BINARY_DIR}/package/changelog.Debian.gz
    ${PROJECT_BINARY_DIR}/package/changelog.gz DESTINATION share/doc/${package} COMPONENT ${component})
endforeach()
install(FILES ${packaging}/leasehold.service DESTINATION /lib/systemd/system COMPONENT program)
install(FILES ${packaging}/leasehold.toml DESTINATION /etc/leasehold COMPONENT program)

# dpkg wants manual pages compressed.
foreach(page leasehold.1 leasehold-deputy.1)
  install(CODE "execute_process(COMMAND gzip -9nf
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/${page}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT program)
endforeach()
# The debug symbols of programs go into packages of their own; those of the archives go nowhere.
foreach(component IN LISTS LEASEHOLD_COMPONENTS)
  if(TARGET leasehold_component_${component})
    install(CODE "execute_process(COMMAND ${CMAKE_STRIP} --strip-debug --enable-deterministic-archives
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libleasehold_${component}.a\"
      COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME leasehold)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Raft consensus engine with a built-in leader lease")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENT_PROGRAM_GROUP program)
set(CPACK_COMPONENT_C_GROUP library)
foreach(component IN LISTS LEASEHOLD_COMPONENTS ITEMS c_development)
  if(NOT component STREQUAL c)
    string(TOUPPER ${component} upper)
    set(CPACK_COMPONENT_${upper}_GROUP development)
  endif()
endforeach()
set(CPACK_COMPONENTS_ALL ${LEASEHOLD_COMPONENTS})
list(APPEND CPACK_COMPONENTS_ALL c_development program)

set(version ${PROJECT_VERSION}-${LEASEHOLD_DEBIAN_REVISION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${LEASEHOLD_DEBIAN_REVISION})
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${LEASEHOLD_DEBIAN_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME leasehold)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.54~)")
# CPack puts the summary above each, and a dot where there is an empty line.
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "Leasehold replicates keys by Raft and serves linearizable reads from its
leader without asking the others. It speaks the protocol of Redis, and has
locks and leases with fencing tokens, watches, and many groups in a process.

This package has the program, its manual page and a systemd unit.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA
  "${packaging}/postinst;${packaging}/prerm;${packaging}/postrm;${packaging}/conffiles")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libleasehold0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${packaging}/triggers")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "Leasehold replicates the state machine of the program that links it, and
tells its leader when it may read without asking the other replicas.

This package has the shared library with the C interface.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libleasehold-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libleasehold0 (= ${version}), libprotobuf-dev, librocksdb-dev, libssl-dev, libfmt-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libasio-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Leasehold replicates the state machine of the program that links it, and
tells its leader when it may read without asking the other replicas.

This package has the headers and archives of the C++ library, the header of
the C interface, and what CMake and pkg-config need to find them.")
include(CPack)
