// One operator, whole: its schema, the symbolic shape rule used at capture, and how it is compiled. A row of a family's
// table (ops/<family>.cpp); see docs/add-an-op.md.
//
// An operator is compiled in one of these ways:
//   Pointwise   element(): the value of one result element from elements of the arguments
//   View        view(): where in the argument an element of the result lies; never a kernel of its own
//   Reduction   reduction(): which dimensions are folded and how; element(): the operand before folding
//   Concat      prim::cat and its kin: each argument is written into a window of the result
//   Composite   decompose(): rewritten into other operators before lowering
//   Extern      called through ATen by the bridge; with decompose(): where that gives nothing
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "loop/kernel.h"
#include "ops/context.h"

namespace cresset::ops {

enum class OpClass : uint8_t { Pointwise, View, Reduction, Concat, Composite, Extern };
inline constexpr OpClass kExtern = OpClass::Extern;

using Types = std::vector<graph::TensorType>;
using Index = std::vector<sym::ExprId>;  // one expression a dimension

struct Reduction {
  loop::Combine combine;
  std::vector<int64_t> dims;  // of the argument, ascending, non-negative
  bool keepdim = false;
  DType accumulate;  // dtype the operand is cast to before folding (sum: accumulate_dtype)
};

struct OpDef {
  std::string_view schema;  // as in native_functions.yaml, e.g. "aten::relu(Tensor self) -> Tensor"
  OpClass op_class;
  // Result types from argument types. Adds guards through the context's env. InvalidArguments: eager would raise
  // (the caller lets eager raise it). Unsupported*: the caller tries the generic rule.
  Result<Types> (*shape)(ShapeContext&, const OpArgs&) = nullptr;
  // Element `index` of result `result`, as a scalar of compute_dtype(result dtype).
  loop::ScalarId (*element)(ElementContext&, const OpArgs&, size_t result, const Index& index) = nullptr;
  // Index into argument 0 for an index into the result.
  Index (*view)(ElementContext&, const OpArgs&, size_t result, const Index& index) = nullptr;
  Reduction (*reduction)(const graph::Graph&, const OpArgs&, size_t result) = nullptr;
  // New values standing for the node's results, made of operators nearer to primitives. Fallback: stays Extern.
  Result<std::vector<graph::ValueId>> (*decompose)(graph::Graph&, const OpArgs&) = nullptr;
  // Pointwise only: costs more than a few cycles an element (transcendental, indirect): not worth recomputing.
  bool heavy = false;
  // Pointwise only: reads several elements of its arguments for one of the result: they are stored.
  bool window = false;
  // On floats: the least change of an argument may change the result by a whole step (floor, sign, a remainder; an
  // extreme, whose derivative compares what it is of with it). What gives truth values or integers is known by that.
  bool steps = false;
  // Extern only: whatever the data, it does not raise.
  bool never_raises = false;
  // Extern only: the one result starts as a copy of argument 0, and may be computed in its memory where no other
  // argument lies in that.
  bool starts_as_first = false;
  // The operator of the same arguments that gives the first result alone, for where the others are not used. Empty:
  // none for these arguments.
  std::string_view (*alone)(const OpArgs&) = nullptr;
};

std::string_view name_of(const OpDef& def);  // "aten::add.Tensor"

// The row of an operator, nullptr when it has none. Safe from any thread; built once.
const OpDef* find(graph::OpId op);
const OpDef* find(std::string_view name);
std::span<const OpDef* const> all();

}  // namespace cresset::ops
