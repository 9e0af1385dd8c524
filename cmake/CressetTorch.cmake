# libtorch as installed in Python's torch package, or any libtorch given by -DCRESSET_TORCH_DIR=<folder with include/ and
# lib/>. No CUDA toolkit is looked for: a CPU build of cresset drives a CUDA build of torch.
find_package(Python3 COMPONENTS Interpreter Development.Module REQUIRED)
if(NOT CRESSET_TORCH_DIR)
  set(find_torch "import importlib.util, os; print(os.path.dirname(importlib.util.find_spec('torch').origin))")
  # The environment's torch (-I), also in an isolated build, else that of the build.
  foreach(flag -I -s)
    execute_process(COMMAND ${Python3_EXECUTABLE} ${flag} -c "${find_torch}" OUTPUT_VARIABLE CRESSET_TORCH_DIR
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(CRESSET_TORCH_DIR)
      break()
    endif()
  endforeach()
  if(NOT CRESSET_TORCH_DIR)
    message(FATAL_ERROR "${Python3_EXECUTABLE} has no torch: pip install torch, or pass CRESSET_TORCH_DIR")
  endif()
endif()
message(STATUS "torch in ${CRESSET_TORCH_DIR}")

add_library(cresset_libtorch INTERFACE)
target_include_directories(cresset_libtorch SYSTEM INTERFACE ${CRESSET_TORCH_DIR}/include
                                                             ${CRESSET_TORCH_DIR}/include/torch/csrc/api/include)
target_link_directories(cresset_libtorch INTERFACE ${CRESSET_TORCH_DIR}/lib)
target_link_libraries(cresset_libtorch INTERFACE torch torch_cpu c10)
target_compile_definitions(cresset_libtorch INTERFACE TORCH_API_INCLUDE_EXTENSION_H _GLIBCXX_USE_CXX11_ABI=1)
target_link_options(cresset_libtorch INTERFACE -Wl,--no-as-needed)
# Programs and libraries in the build folder find libtorch by themselves. Installed ones contain no path of this machine:
# Python has loaded libtorch before the module, and a C++ program links against it.
list(APPEND CMAKE_BUILD_RPATH ${CRESSET_TORCH_DIR}/lib)
