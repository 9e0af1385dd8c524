// The definition of an operator: its schema, the symbolic shape rule used at capture, and its compilation. It is a row
// of a family's table (ops/<family>.cpp); see docs/add-an-op.md.
//
// An operator is compiled in one of these ways:
//   Pointwise   element(): the value of a result element from elements of the arguments
//   View        view(): the argument index of an element of the result; never a kernel
//   Reduction   reduction(): the folded dimensions and the fold; element(): the operand before folding
//   Concat      prim::cat and similar operators: each argument is written to a window of the result
//   Composite   decompose(): rewritten to other operators before lowering
//   Extern      called through ATen by the bridge; with decompose(): only if decompose() returns a fallback; with
//               index_fault: only where kernels cannot report an index out of range (index_reads.h); with
//               reduction(): only where kernels have no scans (scan.h)
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/index_fault.h"
#include "graph/graph.h"
#include "loop/kernel.h"
#include "ops/context.h"
#include "ops/op_traits.h"

namespace cresset::ops {

enum class OpClass : uint8_t { Pointwise, View, Reduction, Concat, Composite, Extern };
inline constexpr OpClass kExtern = OpClass::Extern;

using Types = std::vector<graph::TensorType>;
using Index = std::vector<sym::ExprId>;  // an expression for each dimension

struct Reduction {
  loop::Combine combine;
  std::vector<int64_t> dims;  // of the argument, ascending, non-negative
  bool keepdim = false;
  DType accumulate;  // dtype the operand is cast to before folding (sum: accumulate_dtype)
};

struct OpDef {
  std::string_view schema;  // as in native_functions.yaml, e.g. "aten::relu(Tensor self) -> Tensor"
  OpClass op_class;
  // Returns result types from argument types. Adds guards through the context's env. InvalidArguments: eager mode would
  // raise (the caller lets eager mode raise it). Unsupported*: the caller tries the generic rule.
  Result<Types> (*shape)(ShapeContext&, const OpArgs&) = nullptr;
  // Returns element `index` of result `result`, as a scalar of compute_dtype(result dtype).
  loop::ScalarId (*element)(ElementContext&, const OpArgs&, size_t result, const Index& index) = nullptr;
  // Returns the index into argument 0 for an index into the result.
  Index (*view)(ElementContext&, const OpArgs&, size_t result, const Index& index) = nullptr;
  Reduction (*reduction)(const graph::Graph&, const OpArgs&, size_t result) = nullptr;
  // Returns new values for the node's results, computed by operators closer to primitives. Fallback: stays Extern.
  Result<std::vector<graph::ValueId>> (*decompose)(graph::Graph&, const OpArgs&) = nullptr;
  // Pointwise only: an element costs more than a few cycles (transcendental, indirect), so recomputing does not pay.
  bool heavy = false;
  // Pointwise only: an element of the result reads several elements of the arguments, so the arguments are stored.
  bool window = false;
  // On floats: a minimal change of an argument may change the result by a whole step. Examples are floor, sign, a
  // remainder, and an extreme, whose derivative compares its argument with it. Operators with boolean or integer
  // results need no flag.
  bool steps = false;
  // Extern only: the operator never raises because of data.
  bool never_raises = false;
  // Extern only: the single result starts as a copy of argument 0. It may be computed in the memory of argument 0 where
  // no other argument overlaps it.
  bool starts_as_first = false;
  // Extern only: the operator reads argument 0 at indices from tensors. Devices that report indices out of range
  // compute it by element(); eager mode raises this error.
  IndexFault index_fault = IndexFault::None;
  // Returns the operator with the same arguments which computes only the first result, for calls with other results
  // unused. Empty: no such operator for these arguments.
  std::string_view (*alone)(const OpArgs&) = nullptr;
  // Whether the result is argument 0, element by element. The caller compares the types.
  bool (*is_no_op)(const OpArgs&) = nullptr;
  // The name by which libraries apply the operator as an epilogue of a product (prim_extern.cpp).
  std::string_view (*epilogue)(const OpArgs&) = nullptr;
  OpTraits traits = {};
};

std::string_view name_of(const OpDef& def);  // "aten::add.Tensor"

// Returns the row of an operator, or nullptr when it has none. Thread-safe; built once.
const OpDef* find(graph::OpId op);
const OpDef* find(std::string_view name);
std::span<const OpDef* const> all();

}  // namespace cresset::ops
