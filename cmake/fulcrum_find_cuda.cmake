# The CUDA toolkit for fulcrum::fulcrum, in the build tree and in the installed package.
# CMake 3.25.1's FindCUDAToolkit ends with an error where the project's minimum is 3.25 and the toolkit has no nvToolsExt,
# as CUDA 13 has none: for the length of the search the minimum is one lower.
set(fulcrum_cmake_minimum ${CMAKE_MINIMUM_REQUIRED_VERSION})
set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
find_package(CUDAToolkit 13.0 REQUIRED)
set(CMAKE_MINIMUM_REQUIRED_VERSION ${fulcrum_cmake_minimum})
unset(fulcrum_cmake_minimum)
