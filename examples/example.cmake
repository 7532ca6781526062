# leasehold_example(NAME COMPONENT): the program NAME of main.cc, which links Leasehold::COMPONENT.
#
# By default it takes an installed Leasehold; with -DLEASEHOLD_SOURCE=DIR it builds the checkout in DIR as a part of
# itself. Either way the target has the same name.
macro(leasehold_example name component)
  if(LEASEHOLD_SOURCE)
    add_subdirectory(${LEASEHOLD_SOURCE} leasehold EXCLUDE_FROM_ALL)
  else()
    find_package(Leasehold 0.2 REQUIRED COMPONENTS ${component})
  endif()
  add_executable(${name} main.cc)
  target_link_libraries(${name} PRIVATE Leasehold::${component})
endmacro()
