#include "simt.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "codegen/nvptx/emit_kernel.h"
#include "codegen/nvptx/target.h"

namespace cresset::codegen::nvptx {

SimtKernel::SimtKernel(const loop::Kernel& kernel, const Schedule& schedule) {
  static const PtxCompiler compiler(kNewestChip);
  llvm::LLVMContext context;
  llvm::Module module("simt", context);
  compiler.prepare(module);
  for (int v = 0; v < kVariants; ++v) {
    const auto variant = static_cast<Variant>(v);
    if (schedule.has(variant)) emit_kernel(kernel, schedule, variant, "kernel" + std::string(suffix(variant)), module);
  }
  module_ = std::make_unique<gpu_simulator::SimtModule>(module);
}

std::string SimtKernel::launch(const Launch& launch, const Numbers& numbers, const std::vector<void*>& buffers,
                               const std::vector<int64_t>& symbols, uint32_t seed) const {
  std::vector<int64_t> parameters;
  for (void* buffer : buffers) parameters.push_back(reinterpret_cast<int64_t>(buffer));
  numbers.pass_values(parameters);
  parameters.insert(parameters.end(), symbols.begin(), symbols.end());
  for (const int64_t divisor : numbers.divisors()) parameters.push_back(static_cast<int64_t>(magic_of(divisor)));
  std::vector<char> workspace(static_cast<size_t>(launch.workspace_bytes) + 64, 0x5b);
  parameters.push_back(reinterpret_cast<int64_t>(workspace.data()));
  parameters.push_back(0);
  if (launch.nothing()) return "";
  const gpu_simulator::SimtFunction& function = *module_->function("kernel" + std::string(suffix(launch.variant)));
  const runtime::LaunchConfig config{.grid = {launch.grid_x, launch.grid_y, 1},
                                     .block = {launch.block_x, launch.block_y, 1},
                                     .shared_bytes = launch.shared_bytes};
  const int64_t passes = launch.splits > 1 ? numbers[kStages] : 0;
  for (int64_t pass = 0; pass <= passes; ++pass) {
    parameters.back() = launch.splits | pass << 32;
    if (std::string wrong = run_grid(function, config, parameters.data(), seed); !wrong.empty()) return wrong;
  }
  for (size_t i = static_cast<size_t>(launch.workspace_bytes); i < workspace.size(); ++i)
    if (workspace[i] != 0x5b) return "workspace overrun";
  return "";
}

}  // namespace cresset::codegen::nvptx
