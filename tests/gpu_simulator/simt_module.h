// The code of GPU kernels, compiled for the host: LLVM modules made for NVPTX, with functions of simt_threads.h in
// place of NVPTX's intrinsics and assembly.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "simt_threads.h"

namespace llvm {
class Module;
}

namespace cresset::gpu_simulator {

class SimtModule {
 public:
  // Compiles all kernels of the module, and changes the module. The code stays loaded as long as the process runs.
  explicit SimtModule(llvm::Module& module);
  // The same from LLVM's text. Fallback: the text is no module.
  static Result<std::unique_ptr<SimtModule>> parse(const std::string& text);

  // nullptr: the module has no kernel of that name.
  const SimtFunction* function(const std::string& name) const;

 private:
  std::unordered_map<std::string, SimtFunction> functions_;
};

// PTX of LLVM's text, for the chip (90: sm_90).
Result<std::string> ptx_of(const std::string& text, int chip);

}  // namespace cresset::gpu_simulator
