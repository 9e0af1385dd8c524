// The executable form: a flat tape over tensor slots and size slots. It is plain data; the bridge executes it with real
// tensors.
//
// Size slots are the values of Program::sizes, a SizeProgram over the call's symbols. Program::symbols has the sources
// of the symbols' values. Every size-dependent number is an index into the size slots (SizeRef).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/index_fault.h"
#include "graph/graph.h"
#include "runtime/compiled_kernel.h"
#include "sym/size_program.h"

namespace cresset::runtime {

using TensorId = Id<struct RuntimeTensorTag>;
struct SizeRef {
  uint32_t index;
  bool operator==(const SizeRef&) const = default;
};

// The memory of a tensor slot.
enum class Home : uint8_t {
  Input,     // the caller's tensor `position`
  Constant,  // the held tensor `position`
  Arena,     // in this call's arena, laid out by `plan_arena` (arena_plan.h)
  Fresh,     // own allocation: a graph output
  Extern,    // allocated by the extern call which produces it
  View,      // inside `base`
  Reports,   // an i64 for each of Program::index_sites, at the same address in all calls (index_reports.h)
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
  uint32_t first_step = 0, last_step = UINT32_MAX;  // Arena: the steps, in any order-preserving numbering, between
                                                    // which the contents matter; first > last: never
  TensorId continues;  // Arena: the Arena or Extern tensor whose memory this slot takes over. The launch which first
                       // writes this slot reads the old tensor through it; a call receives both. At most one slot
                       // continues a tensor. Fresh: likewise, Arena only.
  std::string name;    // for messages
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
// An ATen operator. Results with home Arena or Fresh are written in place of an allocation, by operators which support
// it. A result with home Extern is the tensor returned by the operator. It is restrided by copy if its strides differ
// from the slot's.
struct ExternCall {
  graph::OpId op;
  std::vector<ExternArg> args;    // schema order
  std::vector<TensorId> results;  // invalid: unused
  uint32_t location = 0;
};
// Copies `from` into `to` (same sizes; strides may differ): write-back of mutations, layout changes between externs.
struct Copy {
  TensorId from, to;
  bool unseen = false;  // as in graph::Mutation
};
// Releases the memory of Extern tensors which are no longer used.
struct Release {
  std::vector<TensorId> tensors;
};
using Step = std::variant<Launch, ExternCall, Copy, Release>;

// A place where kernels report an index out of range.
struct IndexSite {
  IndexFault fault = IndexFault::None;
  uint32_t dim = 0;  // as eager mode names it
  SizeRef extent{};
  uint32_t location = 0;
};

// The source of a symbol's value at a call.
struct SymbolSource {
  enum class Kind : uint8_t { InputSize, InputStride, IntArgument, ConstantSize, Element, Computed } kind;
  uint32_t position;  // input tensor, integer argument, or derived integer
  uint32_t dim = 0;   // Element: its index
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
  std::vector<std::string> kernel_text;  // for readers: printed loop kernels
  std::vector<std::string> locations;
  std::vector<IndexSite> index_sites;
};

std::string print(const Program& program);

}  // namespace cresset::runtime
