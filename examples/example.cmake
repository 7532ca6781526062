# leasehold_example(NAME COMPONENT): the program NAME of main.cc, which links Leasehold::COMPONENT.
#
# By default it takes an installed Leasehold; with -DLEASEHOLD_SOURCE=DIR it builds the checkout in DIR as a part of
# itself; in a project that has Leasehold already, it takes that. The target has the same name each time.
macro(leasehold_example name component)
  if(TARGET Leasehold::${component})
    # Nothing to find.
  elseif(LEASEHOLD_SOURCE)
    add_subdirectory(${LEASEHOLD_SOURCE} leasehold EXCLUDE_FROM_ALL)
  else()
    find_package(Leasehold 0.2 REQUIRED COMPONENTS ${component})
  endif()
  add_executable(${name} main.cc)
  target_link_libraries(${name} PRIVATE Leasehold::${component})
endmacro()
