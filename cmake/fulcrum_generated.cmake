# What codegen renders for the build itself: the embedded headers (for engines too), and for the tools and tests the
# tuner's space, the list of models and the regression set. Everything lands in ${fulcrum_generated_dir}; files that
# would not change are left alone, so an edit builds only what it reaches.
set(fulcrum_generated_dir ${PROJECT_BINARY_DIR}/generated)
set(fulcrum_render ${Python3_EXECUTABLE} -B ${fulcrum_codegen_dir}/render.py)
file(GLOB fulcrum_codegen_files CONFIGURE_DEPENDS ${fulcrum_codegen_dir}/*.py ${fulcrum_codegen_dir}/templates/*.j2)
file(GLOB_RECURSE fulcrum_device_headers CONFIGURE_DEPENDS
  ${fulcrum_include_dir}/fulcrum/*.h ${fulcrum_include_dir}/fulcrum/*.cuh ${fulcrum_include_dir}/fulcrum/*.def)

add_custom_command(
  OUTPUT ${fulcrum_generated_dir}/fulcrum_embedded_headers.cpp ${fulcrum_generated_dir}/fulcrum_embedded_headers.hpp
  COMMAND ${fulcrum_render} headers --include ${fulcrum_include_dir} --out ${fulcrum_generated_dir}
  DEPENDS ${fulcrum_device_headers} ${fulcrum_codegen_files}
  COMMENT "Rendering the embedded headers" VERBATIM)
add_library(fulcrum_embedded_headers STATIC EXCLUDE_FROM_ALL ${fulcrum_generated_dir}/fulcrum_embedded_headers.cpp)
add_library(fulcrum::embedded_headers ALIAS fulcrum_embedded_headers)
target_include_directories(fulcrum_embedded_headers PUBLIC ${fulcrum_generated_dir})
target_link_libraries(fulcrum_embedded_headers PUBLIC fulcrum)
if(FULCRUM_INSTALL)
  add_custom_target(fulcrum_rendered_headers ALL DEPENDS ${fulcrum_generated_dir}/fulcrum_embedded_headers.cpp)
endif()

if(FULCRUM_TOOLS)
  add_executable(describe ${fulcrum_describe_source})
  target_link_libraries(describe PRIVATE fulcrum)
  target_compile_features(describe PRIVATE cxx_std_20)
  target_compile_options(describe PRIVATE -O1)

  set(fulcrum_space ${fulcrum_codegen_dir}/space.toml)
  add_custom_command(
    OUTPUT ${fulcrum_generated_dir}/fulcrum_space.hpp
    COMMAND ${fulcrum_render} space --describe $<TARGET_FILE:describe> --space ${fulcrum_space}
      --out ${fulcrum_generated_dir}
    DEPENDS describe ${fulcrum_space} ${fulcrum_codegen_files}
    COMMENT "Rendering the tuner's space" VERBATIM)
  add_custom_target(fulcrum_space_header DEPENDS ${fulcrum_generated_dir}/fulcrum_space.hpp)

  set(fulcrum_models ${PROJECT_SOURCE_DIR}/tools/harness/models.tsv)
  add_custom_command(
    OUTPUT ${fulcrum_generated_dir}/fulcrum_models.hpp
    COMMAND ${fulcrum_render} models --models ${fulcrum_models} --out ${fulcrum_generated_dir}
    DEPENDS ${fulcrum_models} ${fulcrum_codegen_files}
    COMMENT "Rendering the list of models" VERBATIM)
  add_custom_target(fulcrum_models_header DEPENDS ${fulcrum_generated_dir}/fulcrum_models.hpp)

  add_custom_target(readme
    COMMAND ${fulcrum_render} readme --describe $<TARGET_FILE:describe> --space ${fulcrum_space}
      --readme ${PROJECT_SOURCE_DIR}/README.md
    DEPENDS describe COMMENT "Rendering the README's lever table" VERBATIM)
endif()

if(FULCRUM_TESTS)
  set(fulcrum_tables ${PROJECT_SOURCE_DIR}/bench/tables)
  file(GLOB fulcrum_table_files CONFIGURE_DEPENDS ${fulcrum_tables}/*.tsv)
  set(fulcrum_compile_shards 8)
  set(fulcrum_case_files ${fulcrum_generated_dir}/device_cases.cpp ${fulcrum_generated_dir}/compile_cases.cpp
    ${fulcrum_generated_dir}/emulator_cases.cpp)
  add_custom_command(
    OUTPUT ${fulcrum_case_files} ${fulcrum_generated_dir}/regression_set.tsv
    COMMAND ${fulcrum_render} cases --describe $<TARGET_FILE:describe> --space ${fulcrum_space}
      --tables ${fulcrum_tables} --shards ${fulcrum_compile_shards} --out ${fulcrum_generated_dir}
    DEPENDS describe ${fulcrum_space} ${fulcrum_codegen_files} ${fulcrum_table_files}
    COMMENT "Rendering the regression set" VERBATIM)
  add_custom_target(fulcrum_regression_set DEPENDS ${fulcrum_case_files})
endif()
