# Target `syntax_check`: a second compiler's opinion. clang++ reads every source of every target
# with warnings as errors and writes nothing but a stamp per file, so that a second run looks only
# at what changed. ./dev lint makes the stamps it wants. Not part of `all`.

find_program(TROUPE_CLANG clang++)

# troupe_syntax_check_folder(DIR RESULT): appends to RESULT the stamps of every target made in DIR
# and below.
function(troupe_syntax_check_folder folder result)
  set(stamps ${${result}})
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER targets EXCLUDE REGEX "_each$")  # the sources of another target once more
  foreach(target ${targets})
    troupe_syntax_check_target(${target} stamps)
  endforeach()
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder ${subfolders})
    troupe_syntax_check_folder(${subfolder} stamps)
  endforeach()
  set(${result} ${stamps} PARENT_SCOPE)
endfunction()

# troupe_syntax_check_target(TARGET RESULT): appends to RESULT one stamp per C++ source of the
# target, leaving out generated ones.
function(troupe_syntax_check_target target result)
  set(stamps ${${result}})
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  # Libraries' headers are not ours to warn about. /usr/include itself must keep its place in the
  # search.
  set(includes $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  set(not_libraries "^(${PROJECT_SOURCE_DIR}|/usr/include)$")
  set(libraries "$<FILTER:${includes},EXCLUDE,${not_libraries}>")
  set(definitions $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
    cmake_path(GET source EXTENSION LAST_ONLY extension)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} NORMALIZE generated)
    if(generated OR NOT extension STREQUAL ".cpp")
      continue()
    endif()
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    get_source_file_property(own_definitions ${source} TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
    if(NOT own_definitions)
      set(own_definitions)
    endif()
    list(TRANSFORM own_definitions PREPEND -D)
    set(stamp ${PROJECT_BINARY_DIR}/syntax_check/${target}/${name}.ok)
    cmake_path(GET stamp PARENT_PATH stamp_folder)
    file(MAKE_DIRECTORY ${stamp_folder})
    add_custom_command(OUTPUT ${stamp}
      COMMAND ${TROUPE_CLANG} -fsyntax-only -std=c++${CMAKE_CXX_STANDARD}
              -Wall -Wextra -Wpedantic -Werror -I${PROJECT_SOURCE_DIR}
              "$<$<BOOL:${libraries}>:-isystem$<JOIN:${libraries},;-isystem>>"
              "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
              ${own_definitions} -MD -MT ${stamp} -MF ${stamp}.d ${source}
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
      DEPENDS ${source} DEPFILE ${stamp}.d COMMENT "clang++ reads ${name}"
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND stamps ${stamp})
  endforeach()
  set(${result} ${stamps} PARENT_SCOPE)
endfunction()

if(TROUPE_CLANG)
  set(stamps)
  troupe_syntax_check_folder(${PROJECT_SOURCE_DIR} stamps)
  add_custom_target(syntax_check DEPENDS ${stamps})
endif()
