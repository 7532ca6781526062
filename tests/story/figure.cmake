# Draws SCENARIO with PROGRAM into DRAWN, and compares it with FIGURE byte by byte.
execute_process(COMMAND ${PROGRAM} timeline ${SCENARIO} -o ${DRAWN} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${SCENARIO} cannot be drawn")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${DRAWN} ${FIGURE} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${FIGURE} is not what the program draws from ${SCENARIO}: look at ${DRAWN}, and if it is right, "
    "leasehold timeline ${SCENARIO} -o ${FIGURE}")
endif()
