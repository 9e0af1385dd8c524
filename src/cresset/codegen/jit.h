// Loads object files into the process and finds functions in them.
#pragma once

#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <memory>
#include <string>

#include "codegen/codegen.h"

namespace llvm::orc {
class LLJIT;
}

namespace cresset::codegen {

class Jit {
 public:
  explicit Jit(const std::string& triple);
  ~Jit();
  void set_resolver(SymbolResolver resolver) { resolver_ = resolver; }
  // The function `name` of an object; nullptr, with the reason in `error`, when it cannot be linked. Objects stay
  // loaded.
  KernelFn load(std::unique_ptr<llvm::MemoryBuffer> object, const std::string& name, std::string& error);

 private:
  class Library;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::atomic<SymbolResolver> resolver_ = nullptr;
  int count_ = 0;
};

}  // namespace cresset::codegen
