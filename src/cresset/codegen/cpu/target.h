// The target machine, and the compilation of a module to an object file.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

namespace cresset::codegen::cpu {

struct Target {
  std::string triple, cpu, features;
  int vector_bits = 128;
  bool has_fma = false;     // fused multiply-add in hardware
  bool has_bf16 = false;    // f32 to bf16 on the vectors in use
  bool has_scalef = false;  // AVX-512's x * 2^n on the vectors in use
};

// The host, restricted to vectors of at most `vector_bits` (0: its widest).
Target host_target(int vector_bits);

// Compiles modules to objects. Contains LLVM state which is expensive to build; use from a single thread at a time.
class ObjectCompiler {
 public:
  explicit ObjectCompiler(const Target& target);
  ~ObjectCompiler();
  void prepare(llvm::Module& module) const;   // triple, data layout
  std::string compile(llvm::Module& module);  // an object file

 private:
  void set_attributes(llvm::Module& module) const;
  struct Passes;
  Target target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<Passes> passes_;
};

}  // namespace cresset::codegen::cpu
