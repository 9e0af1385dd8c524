// The way from a module to PTX.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

namespace cresset::codegen::nvptx {

// Oldest and newest chips that LLVM 19 is asked to make code for. The driver makes code for newer ones from PTX of the
// newest.
inline constexpr int kOldestChip = 80, kNewestChip = 90;

// Turns modules into PTX. Holds LLVM state that is costly to build; use from one thread at a time.
class PtxCompiler {
 public:
  explicit PtxCompiler(int chip);  // 90: sm_90
  ~PtxCompiler();
  void prepare(llvm::Module& module) const;   // triple, data layout
  std::string compile(llvm::Module& module);  // text

 private:
  struct Passes;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<Passes> passes_;
};

}  // namespace cresset::codegen::nvptx
