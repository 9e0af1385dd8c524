// Runs kernels of the GPU's code generator on the host.
#include "codegen/nvptx/emit_kernel.h"
#include "kernel_harness.h"
#include "simt.h"

namespace cresset::codegen::cpu {

const std::vector<KernelRunner> kKernelRunners = {&run_on_cpu, &run_on_simt};

namespace {

using nvptx::Launch;
using nvptx::Numbers;
using nvptx::Shape;
using nvptx::Variant;

// As the device would be launched, and in shapes that it would take for other sizes.
std::vector<Launch> launches_of(const Numbers& numbers, Variant variant) {
  const nvptx::Machine small{.multiprocessors = 1, .most_threads = 2048};
  std::vector<Launch> out{launch_of(numbers, variant, nvptx::Machine{}, 0, 1)};
  if (numbers.shape() == Shape::Points) return out;
  const bool rows = numbers.shape() == Shape::Rows;
  out.push_back(launch_of(numbers, variant, small, rows ? 64 : 4, 1));
  constexpr int64_t kShort = 4096;  // few threads for a long row lose precision
  if (numbers.inner_chunks(variant) <= kShort) out.push_back(launch_of(numbers, variant, small, rows ? 4 : 2, 1));
  out.push_back(launch_of(numbers, variant, small, rows ? 32 : 1, 3));
  out.push_back(launch_of(numbers, variant, small, rows ? 256 : 8, 2));
  return out;
}

std::string name_of(const Launch& l) {
  return "simt" + std::string(suffix(l.variant)) + " grid " + std::to_string(l.grid_x) + " x " +
         std::to_string(l.grid_y) + " block " + std::to_string(l.block_x) + " x " + std::to_string(l.block_y);
}

}  // namespace

void run_on_simt(KernelBuilder& k, const std::vector<int64_t>& symbols, const Visit& visit) {
  const nvptx::Schedule schedule = nvptx::make_schedule(k.kernel);
  if (nvptx::unsupported(k.kernel, schedule) != nullptr) return;
  std::unordered_map<loop::VarId, uint32_t> slots;
  const std::vector<loop::VarId> order = k.kernel.size_symbols();
  for (size_t i = 0; i < order.size(); ++i) slots[order[i]] = static_cast<uint32_t>(i);
  const auto program = sym::SizeProgram::compile(k.pool, schedule.numbers, slots);
  std::vector<int64_t> outputs(program.output_count());
  program.run(symbols.data(), outputs.data());
  const Numbers numbers(outputs);
  const nvptx::SimtKernel code(k.kernel, schedule);
  uint32_t seed = 1;
  for (int v = 0; v < nvptx::kVariants; ++v) {
    const auto variant = static_cast<Variant>(v);
    for (const Launch& launch : numbers.has(variant) ? launches_of(numbers, variant) : std::vector<Launch>()) {
      Memory got(k);
      std::vector<uint64_t> addresses;
      for (void* p : got.pointers) addresses.push_back(reinterpret_cast<uint64_t>(p));
      if (!numbers.allows(variant, addresses)) continue;
      ASSERT_EQ(code.launch(launch, numbers, got.pointers, symbols, seed++), "") << name_of(launch);
      visit(got, name_of(launch));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace cresset::codegen::cpu
