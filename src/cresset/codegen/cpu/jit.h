// Loads object files into the process and looks up functions in them.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "codegen/cpu/symbol_resolver.h"
#include "runtime/compiled_kernel.h"

namespace llvm::orc {
class LLJIT;
}

namespace cresset::codegen::cpu {

class Jit {
 public:
  explicit Jit(const std::string& triple);
  ~Jit();
  void set_resolver(SymbolResolver resolver) { resolver_ = resolver; }
  // Returns the entry of an object. The code stays loaded. A fallback means that the object cannot be linked, because
  // it was compiled where other library functions existed.
  Result<void*> load(const runtime::KernelImage& object);

 private:
  class Library;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::atomic<SymbolResolver> resolver_ = nullptr;
  int count_ = 0;
};

// Under CRESSET_PROFILE_KERNELS=1: names loaded code in the file which perf reads for generated code
// (/tmp/perf-<process>.map), and to debuggers (debugger.h). The first name of an address counts.
void name_code(const void* entry, const std::string& name);

}  // namespace cresset::codegen::cpu
