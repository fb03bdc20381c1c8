# fulcrum_add_kernels(target TABLE best.tsv [NAME name] [ARCHITECTURES 90a-real ...] [NO_HELPERS])
#
# Compiles one kernel for each distinct Config of a best-config table into `target`, and the helper kernels that build
# routings and repack weights to the table's layouts (a program has these once: NO_HELPERS for its second table), with a
# registry: <name.hpp> declares `fulcrum::Registry name();` for fulcrum::find_kernel. NAME is ${target}_kernels if absent.
# ARCHITECTURES is as in CUDA_ARCHITECTURES; left out, target's own. Every Config is checked for every architecture
# while CMake runs; the table, core/ and the code generator are watched. Needs Python 3.11 with Jinja2.
include_guard(GLOBAL)

# Compiles the host tool `describe` for this run of CMake, unless it is newer than all that it is made of.
function(fulcrum_configure_describe result)
  set(executable ${CMAKE_BINARY_DIR}/fulcrum/describe)
  file(GLOB core_headers CONFIGURE_DEPENDS ${fulcrum_include_dir}/fulcrum/core/*)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${core_headers} ${fulcrum_describe_source})
  set(stale FALSE)
  foreach(file ${core_headers} ${fulcrum_describe_source})
    if(${file} IS_NEWER_THAN ${executable})  # also when there is no executable yet
      set(stale TRUE)
    endif()
  endforeach()
  if(stale)
    message(STATUS "fulcrum: compiling the host tool describe")
    try_compile(compiled ${CMAKE_BINARY_DIR}/fulcrum/try ${fulcrum_describe_source}
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${fulcrum_include_dir};${CUDAToolkit_INCLUDE_DIRS}" CXX_STANDARD 17 CXX_STANDARD_REQUIRED TRUE
      COPY_FILE ${executable} OUTPUT_VARIABLE output)
    if(NOT compiled)
      message(FATAL_ERROR "fulcrum_add_kernels: describe.cpp does not compile\n${output}")
    endif()
  endif()
  set(${result} ${executable} PARENT_SCOPE)
endfunction()

function(fulcrum_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg NO_HELPERS "TABLE;NAME" "ARCHITECTURES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_TABLE)
    message(FATAL_ERROR "usage: fulcrum_add_kernels(target TABLE best.tsv [NAME name] [ARCHITECTURES ...] [NO_HELPERS])")
  endif()
  if(NOT arg_NAME)
    string(MAKE_C_IDENTIFIER ${target}_kernels arg_NAME)
  endif()
  if(NOT arg_ARCHITECTURES)
    get_target_property(arg_ARCHITECTURES ${target} CUDA_ARCHITECTURES)
  endif()
  if(NOT arg_ARCHITECTURES MATCHES "^[0-9]")
    message(FATAL_ERROR "fulcrum_add_kernels: name ARCHITECTURES, or set CUDA_ARCHITECTURES of ${target}")
  endif()
  set(options)
  if(arg_NO_HELPERS)
    set(options --no-helpers)
  endif()
  foreach(architecture ${arg_ARCHITECTURES})
    string(REGEX MATCH "^[0-9]+" cc ${architecture})
    list(APPEND options --cc ${cc})
  endforeach()
  find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
  get_filename_component(table ${arg_TABLE} ABSOLUTE)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/fulcrum/${arg_NAME})
  fulcrum_configure_describe(describe)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${fulcrum_codegen_dir}/render.py kernels
      --describe ${describe} --table ${table} --name ${arg_NAME} --out ${out} ${options}
    OUTPUT_VARIABLE rendered OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE code ERROR_VARIABLE words)
  if(code)
    message(FATAL_ERROR "fulcrum_add_kernels: rendering the kernels of ${table} failed\n${words}")
  endif()
  file(GLOB codegen_files CONFIGURE_DEPENDS ${fulcrum_codegen_dir}/*.py ${fulcrum_codegen_dir}/templates/*.j2)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table} ${codegen_files})

  # A library of their own, because architectures belong to a target
  string(REPLACE "\n" ";" rendered "${rendered}")
  list(TRANSFORM rendered PREPEND ${out}/)
  add_library(${arg_NAME} OBJECT ${rendered} ${out}/${arg_NAME}.cpp)
  set_target_properties(${arg_NAME} PROPERTIES CUDA_ARCHITECTURES "${arg_ARCHITECTURES}" CUDA_STANDARD 17
    POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${arg_NAME} PRIVATE fulcrum::fulcrum)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${arg_NAME}>)
  target_include_directories(${target} PRIVATE ${out})
endfunction()
