# Compile options every target shares, and one function per kind of target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TROUPE_CCACHE})
endif()

add_library(troupe_options INTERFACE)
# -ffp-contract=off: the trained bits must not depend on which products the compiler fuses.
# -fmacro-prefix-map: a failed CHECK names model/tensor.cpp, wherever the tree was built. ccache may
# hand the compiler paths that are relative to the build folder.
cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_BINARY_DIR}
           OUTPUT_VARIABLE source_from_build)
target_compile_options(troupe_options INTERFACE
  -Wall -Wextra -Wpedantic -ffp-contract=off
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${source_from_build}/=
  $<$<BOOL:${TROUPE_WERROR}>:-Werror>)
target_include_directories(troupe_options INTERFACE ${PROJECT_SOURCE_DIR})
if(TROUPE_SANITIZE)
  # GCC 12 warns falsely about std::regex where a sanitizer is on (its bug 105562), and of the fences
  # in Asio that ThreadSanitizer does not see.
  target_compile_options(troupe_options INTERFACE
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-tsan>"
    -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()

# troupe_sources_in(RESULT dir...): sets RESULT to every source directly in the folders.
function(troupe_sources_in result)
  set(sources)
  foreach(folder ${ARGN})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# troupe_jumbo(TARGET): compiles several sources of the target at once. What they include is read once for all of
# them, which makes the first build half as long. NAME_each has the sources one by one. Nothing builds it, but
# compile_commands.json has its commands, which clang-tidy and editors go by.
function(troupe_jumbo name)
  if(NOT TROUPE_JUMBO)
    return()
  endif()
  # g++ takes these sources for headers, whose classes must not have members of types without linkage.
  set(before_each "#if !defined(__clang__)\n#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"\n#endif")
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${TROUPE_JUMBO}
                        UNITY_BUILD_CODE_BEFORE_INCLUDE ${before_each})
  get_target_property(sources ${name} SOURCES)
  add_library(${name}_each OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${name}_each PRIVATE $<TARGET_PROPERTY:${name},LINK_LIBRARIES>)
  target_compile_definitions(${name}_each PRIVATE $<TARGET_PROPERTY:${name},COMPILE_DEFINITIONS>)
  target_compile_options(${name}_each PRIVATE $<TARGET_PROPERTY:${name},COMPILE_OPTIONS>)
endfunction()

# troupe_quick(TARGET): compiles it with -O1 where the build is optimised. Its code runs seldom, and -O3 takes half
# as long again to compile.
function(troupe_quick name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# troupe_library(NAME [JUMBO] [QUICK] FOLDERS dir... LIBRARIES lib...): a static library of every source directly in
# the folders. JUMBO: several of them are compiled at once. QUICK: see troupe_quick.
function(troupe_library name)
  cmake_parse_arguments(ARG "JUMBO;QUICK" "" "FOLDERS;LIBRARIES" ${ARGN})
  troupe_sources_in(sources ${ARG_FOLDERS})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC troupe_options ${ARG_LIBRARIES})
  if(ARG_QUICK)
    troupe_quick(${name})
  endif()
  if(ARG_JUMBO)
    troupe_jumbo(${name})
  endif()
endfunction()

# troupe_test(NAME FOLDERS dir... LIBRARIES lib...): one GoogleTest program of every source directly
# in the folders.
function(troupe_test name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;LIBRARIES" ${ARGN})
  troupe_sources_in(sources ${ARG_FOLDERS})
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE
    ${ARG_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE TROUPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # test_base gets the label base: ctest -L '^base$' runs it alone.
  string(REPLACE "test_" "" label ${name})
  # A test calls what is optimised and is not itself worth it: -O3 takes a third longer to build.
  target_compile_options(${name} PRIVATE -O1)
  troupe_jumbo(${name})
  # Ends what hangs. A test of many processes takes some minutes where others want the processors.
  set(seconds 600)
  if(TROUPE_SANITIZE)
    set(seconds 1500)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES TIMEOUT ${seconds} LABELS ${label})
endfunction()

# troupe_bench(NAME [SOURCES file...] LIBRARIES lib...): a bench program of NAME.cpp, or of the
# files given. It checks its result before it times it, returns non-zero when the result is wrong,
# prints a ratio to its peer or bound, and takes --small: the same in a few seconds, which is how
# ctest runs it.
function(troupe_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES ${name}.cpp)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  if(TROUPE_BUILD_TESTS)
    add_test(NAME ${name}.small COMMAND ${name} --small)
    set_tests_properties(${name}.small PROPERTIES TIMEOUT 300 LABELS bench)
  endif()
endfunction()
