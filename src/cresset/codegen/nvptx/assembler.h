// PTX to machine code. nvJitLink is a library of the CUDA toolkit that CUDA builds of torch bring along; it needs
// neither a driver nor a GPU. It is opened when the first kernel is assembled, never before.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace cresset::codegen::nvptx {

class Assembler {
 public:
  // The text given to assemble(): PTX, or the module in LLVM's own form (for simulators of a GPU).
  enum class Input : uint8_t { Ptx, Llvm };
  virtual ~Assembler() = default;
  virtual Input input() const { return Input::Ptx; }
  // The image for that chip (90: sm_90): a cubin, or what the simulator's device loads. Thread safe.
  virtual Result<std::string> assemble(const std::string& text, int chip) const = 0;
  virtual std::string version() const = 0;  // part of cache keys
};

// Looks in `folders`, then where the system's loader does. Fallback: there is no such library.
Result<std::shared_ptr<const Assembler>> open_nvjitlink(const std::vector<std::string>& folders);
// The program of that name, for tests and for people. Fallback: it does not run.
Result<std::shared_ptr<const Assembler>> open_ptxas(const std::string& program = "ptxas");

// What an assembler says of a function.
struct Usage {
  std::string function;
  int registers = 0, spill_bytes = 0, stack_bytes = 0;
};
Result<std::vector<Usage>> usage_by_ptxas(const std::string& ptx, int chip, const std::string& program = "ptxas");

}  // namespace cresset::codegen::nvptx
