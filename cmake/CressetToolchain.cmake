# Compiler cache, linker, warnings and third-party libraries of the core.
find_program(CCACHE ccache)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # What uses a precompiled header is kept only where ccache need not fear its time stamps and macros.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -Werror=switch -Werror=return-type)
add_link_options(-Wl,--gc-sections)
add_compile_options(-ffunction-sections -fdata-sections)
# gcc's precompiled headers and ccache agree only with this.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)

# Element accesses of the standard library's containers are checked, and a wrong one ends the process where it stands
# instead of reading what lies there. The presets turn it on: all tests run so. Installed packages are built without.
option(CRESSET_HARDENED "Check accesses to the standard library's containers" OFF)
if(CRESSET_HARDENED)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# Several sources at a time: what they share (templates of the standard library and of torch) is compiled once for all of
# them, which is a third of the work. Files of one target see each other's names: two that say the same in an unnamed
# namespace do not compile when they meet. OFF compiles one file alone, which an edit waits less for.
option(CRESSET_UNITY "Compile several sources at a time" ON)
function(cresset_unity target batch)
  if(CRESSET_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# The target exports the symbols that the version script lists and no others, also none of its static libraries.
function(cresset_exports target script)
  target_link_options(${target} PRIVATE -Wl,--version-script=${script})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${script})
endfunction()

# Header-only: torch's own copy of fmt lives in its shared library, and two compiled copies must not meet.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)

# Z3 proves what CRESSET_VALIDATE=1 asks, and helps tests. Its headers are needed here; its library is opened when the
# first proof is asked for, and nothing links against it.
find_path(CRESSET_Z3_INCLUDE z3++.h)
if(CRESSET_Z3_INCLUDE)
  set(CRESSET_HAVE_Z3 ON)
else()
  message(STATUS "Z3 not found: CRESSET_VALIDATE=1 will prove nothing (Debian: libz3-dev)")
endif()

# LLVM, static. 19 is what is tested; 18 and 20 are accepted.
foreach(version 19 20 18)
  find_package(LLVM CONFIG QUIET PATHS /usr/lib/llvm-${version} NO_DEFAULT_PATH)
  if(LLVM_FOUND)
    break()
  endif()
endforeach()
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "cresset needs LLVM 18, 19 or 20 with static libraries (Debian: llvm-19-dev)")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
llvm_map_components_to_libnames(CRESSET_LLVM_LIBS orcjit native NVPTXCodeGen NVPTXDesc NVPTXInfo passes)

# LLVM's own link interface names Z3 (its tests of constraints, which nothing here calls) and shared compression libraries.
# Z3 is left out, and the static libraries are taken where they are installed: what is built then needs none of the three.
if(TARGET LLVMSupport)
  find_library(CRESSET_STATIC_ZSTD libzstd.a)
  find_library(CRESSET_STATIC_ZLIB libz.a)
  get_target_property(llvm_needs LLVMSupport INTERFACE_LINK_LIBRARIES)
  list(FILTER llvm_needs EXCLUDE REGEX "libz3|Z3::")
  if(CRESSET_STATIC_ZSTD)
    list(TRANSFORM llvm_needs REPLACE "^zstd::.*" "${CRESSET_STATIC_ZSTD}")
  endif()
  if(CRESSET_STATIC_ZLIB)
    list(TRANSFORM llvm_needs REPLACE "^ZLIB::.*" "${CRESSET_STATIC_ZLIB}")
  endif()
  set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${llvm_needs}")
endif()
