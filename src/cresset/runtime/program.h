// What runs: a flat tape over tensor slots and size slots. Plain data; the bridge executes it with real tensors.
//
// Size slots: the values of Program::sizes, a SizeProgram over the call's symbols (Program::symbols says where each
// symbol's value is read from). Every number that depends on a size is an index into them (SizeRef).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "runtime/compiled_kernel.h"
#include "sym/size_program.h"

namespace cresset::runtime {

using TensorId = Id<struct RuntimeTensorTag>;
struct SizeRef {
  uint32_t index;
  bool operator==(const SizeRef&) const = default;
};

// Where the memory of a tensor slot is.
enum class Home : uint8_t {
  Input,     // the caller's tensor `position`
  Constant,  // the held tensor `position`
  Arena,     // in this call's arena, which `plan_arena` lays out (arena_plan.h)
  Fresh,     // own allocation: a graph output
  Extern,    // allocated by the extern call that produces it
  View,      // inside `base`
};

struct TensorSlot {
  Home home = Home::Arena;
  uint32_t position = 0;
  TensorId base;
  DType dtype = DType::F32;
  graph::Device device;
  std::vector<SizeRef> sizes, strides;              // strides in elements
  SizeRef offset{};                                 // View: elements from base's element 0
  SizeRef bytes{};                                  // Arena, Fresh: memory needed
  uint32_t first_step = 0, last_step = UINT32_MAX;  // Arena: the steps, in any numbering that keeps their order, from
                                                    // and to which the contents matter; first > last: never
  TensorId continues;  // Arena: the tensor (Arena or Extern) whose memory this one is: the launch that
                       // first writes this slot reads that tensor through it, a call is given both.
                       // At most one slot continues another. Fresh: likewise, Arena alone.
  std::string name;    // for people
};

using ExternArg = std::variant<graph::None, TensorId, std::vector<std::optional<TensorId>>, SizeRef,
                               std::vector<SizeRef>, double, bool, std::vector<double>, std::vector<bool>, std::string,
                               DType, graph::Device, graph::MemoryFormat, graph::StridedLayout>;

struct Launch {
  uint32_t kernel;                // index into Program::kernels
  DeviceKind device;              // of all its buffers
  std::vector<TensorId> buffers;  // Kernel::buffers order
  std::vector<SizeRef> symbols;   // Kernel::size_symbols() order
};
// An ATen operator. Results with home Arena/Fresh are written in place of an allocation, by operators that can; a
// result with home Extern takes the tensor that the operator returns, restrided by copy if its strides are not the
// slot's.
struct ExternCall {
  graph::OpId op;
  std::vector<ExternArg> args;    // schema order
  std::vector<TensorId> results;  // invalid: unused
  uint32_t location = 0;
};
// Copies `from` into `to` (same sizes; strides may differ): write-back of mutations, layout changes between externs.
struct Copy {
  TensorId from, to;
  bool unseen = false;  // graph::Mutation's
};
// The memory of these Extern tensors is not used any more.
struct Release {
  std::vector<TensorId> tensors;
};
using Step = std::variant<Launch, ExternCall, Copy, Release>;

// Where a symbol's value comes from at a call.
struct SymbolSource {
  enum class Kind : uint8_t { InputSize, InputStride, IntArgument, ConstantSize, Element, Computed } kind;
  uint32_t position;  // input tensor, integer argument, or computed number
  uint32_t dim = 0;   // Element: which one, in order
};

struct Program {
  std::vector<sym::VarId> symbols;  // slot i of the size program holds symbols[i]; the bridge knows their sources
  sym::SizeProgram sizes;
  std::vector<TensorSlot> tensors;
  std::vector<Step> steps;
  std::vector<TensorId> inputs;     // invalid: unused input
  std::vector<TensorId> constants;  // likewise
  std::vector<TensorId> outputs;    // graph outputs, in order; may repeat, may be inputs, constants or views
  std::vector<std::shared_ptr<const CompiledKernel>> kernels;
  std::vector<std::string> kernel_text;  // for people: printed loop kernels
  std::vector<std::string> locations;
};

std::string print(const Program& program);

}  // namespace cresset::runtime
