// The interface of operator rules: their arguments, the shape environment, and the builders of results.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "loop/kernel.h"

namespace cresset::ops {

// Whether an argument is this number.
inline bool is_number(const graph::Graph& graph, const graph::Arg& arg, int64_t value) {
  if (const auto* e = std::get_if<sym::ExprId>(&arg)) return graph.pool().is_const(*e, value);
  const auto* number = std::get_if<double>(&arg);
  return number != nullptr && *number == static_cast<double>(value);
}

// A read-only view of a call's arguments, by schema position. A Tensor argument may also be a number (ExprId, double,
// bool). This is a "wrapped number" in ATen's sense: a 0-dim tensor which takes part in type promotion like a Python
// scalar.
class OpArgs {
 public:
  OpArgs(const graph::Graph& graph, const std::vector<graph::Arg>& args) : graph_(&graph), args_(&args) {}

  size_t count() const { return args_->size(); }
  const graph::Arg& operator[](size_t i) const { return (*args_)[i]; }
  bool is_none(size_t i) const { return std::holds_alternative<graph::None>((*args_)[i]); }
  bool is_tensor(size_t i) const { return std::holds_alternative<graph::ValueId>((*args_)[i]); }

  graph::ValueId value(size_t i) const { return std::get<graph::ValueId>((*args_)[i]); }
  const graph::TensorType& tensor(size_t i) const { return graph_->type(value(i)); }
  const std::vector<graph::OptionalValue>& values(size_t i) const {
    return std::get<std::vector<graph::OptionalValue>>((*args_)[i]);
  }
  const graph::TensorType& type(graph::ValueId v) const { return graph_->type(v); }
  sym::ExprId integer(size_t i) const { return std::get<sym::ExprId>((*args_)[i]); }
  const std::vector<sym::ExprId>& integers(size_t i) const { return std::get<std::vector<sym::ExprId>>((*args_)[i]); }
  // A Python/ATen Scalar argument of any kind.
  bool is_scalar(size_t i) const {
    const graph::Arg& a = (*args_)[i];
    return std::holds_alternative<sym::ExprId>(a) || std::holds_alternative<double>(a) ||
           std::holds_alternative<bool>(a);
  }
  bool flag(size_t i) const { return std::get<bool>((*args_)[i]); }
  bool flag_or(size_t i, bool otherwise) const { return is_none(i) ? otherwise : flag(i); }
  double number(size_t i) const { return std::get<double>((*args_)[i]); }
  const std::string& text(size_t i) const { return std::get<std::string>((*args_)[i]); }
  std::optional<DType> dtype(size_t i) const {
    if (is_none(i)) return std::nullopt;
    return std::get<DType>((*args_)[i]);
  }
  // Integers which must be known now: dims, flags, kernel sizes. CHECKs that they are constants; see
  // ShapeContext::constant.
  int64_t constant(size_t i) const { return graph_->pool().const_value(integer(i)); }
  std::vector<int64_t> constants(size_t i) const;

  const graph::Graph& graph() const { return *graph_; }

 private:
  const graph::Graph* graph_;
  const std::vector<graph::Arg>* args_;
};

// For shape rules. Every decision which can depend on a size is made and guarded here.
class ShapeContext {
 public:
  // `demands`: whether the rule may require the conditions which eager mode checks. They already hold for a captured
  // graph. A rule called again for other strides must not specialize sizes to satisfy them.
  enum class Demands : bool { Guarded, KnownOnly };
  ShapeContext(graph::Graph& graph, std::string_view op, Demands demands = Demands::Guarded)
      : graph_(graph), op_(op), demands_(demands) {}
  graph::Graph& graph() { return graph_; }
  sym::ShapeEnv& env() { return graph_.env(); }
  sym::ExprPool& pool() { return graph_.pool(); }

  // Decides a condition, with a guard on hints if necessary. Data-dependent conditions count as false, which the
  // program checks at run time. Use this for layouts, not for decisions about sizes or ranks.
  bool decide(sym::ExprId condition);
  // The same for sizes and ranks. Returns nullopt for a data-dependent condition; the rule then fails with `needs`.
  std::optional<bool> decided(sym::ExprId condition);
  Fallback needs(sym::ExprId condition) const;
  // Like decide, but never guards on "equal to 0 or 1" of a dynamic size: false unless proved.
  bool proved(sym::ExprId condition) { return env().known_true(condition); }
  // Requires a condition which eager mode checks. False: eager mode would raise. Guards only when facts do not decide.
  bool require(sym::ExprId condition);
  bool require_equal(sym::ExprId a, sym::ExprId b);
  // A number which must be concrete (a dim, a kernel size): specializes it.
  int64_t constant(sym::ExprId e);
  std::vector<int64_t> constants(const std::vector<sym::ExprId>& es);

  // Broadcasts sizes like ATen. A guard on equal sizes is preferred to a guard which specializes a size to 1.
  Result<std::vector<sym::ExprId>> broadcast(const std::vector<sym::ExprId>& a, const std::vector<sym::ExprId>& b);
  // Strides which TensorIterator gives the output of a pointwise operator over these operands. The stride order of
  // same-size operands is kept. The first operand which decides resolves ambiguity; the default is contiguous.
  std::vector<sym::ExprId> pointwise_strides(const std::vector<sym::ExprId>& sizes,
                                             const std::vector<const graph::TensorType*>& operands);
  std::vector<sym::ExprId> contiguous_strides(const std::vector<sym::ExprId>& sizes);
  // Strides of a dense tensor of these sizes in the given format.
  std::vector<sym::ExprId> strides_for(graph::MemoryFormat format, const std::vector<sym::ExprId>& sizes);
  // As empty_like(preserve): keeps the stride order of a non-overlapping dense tensor, else contiguous.
  std::vector<sym::ExprId> like_strides(const graph::TensorType& type);
  bool is_contiguous(const graph::TensorType& type);
  // The memory format which ATen derives from strides when an operator asks for it. Ambiguous shapes count as
  // Contiguous.
  graph::MemoryFormat suggest_format(const graph::TensorType& type);

  // Wraps a negative dim; fails when out of range. rank 0 counts as rank 1, as in ATen.
  Result<int64_t> wrap_dim(sym::ExprId dim, size_t rank);

  Fallback invalid(std::string why) const;      // eager mode raises
  Fallback unsupported(std::string why) const;  // the native rule does not cover this

  DType default_dtype = DType::F32;  // torch.get_default_dtype() at capture

 private:
  graph::Graph& graph_;
  std::string_view op_;
  Demands demands_;
};

// An index from a tensor's element, which no access leaves.
struct DataIndex {
  sym::ExprId index;
  std::optional<loop::ScalarId> inside;  // false: no element may be read
};

// For element and view rules. Implemented by the lowering.
class ElementContext {
 public:
  virtual ~ElementContext() = default;
  // Returns the element of `value` at `index` (an expression for each dimension), as a scalar of compute_dtype(value's
  // dtype).
  virtual loop::ScalarId element(graph::ValueId value, const std::vector<sym::ExprId>& index) = 0;
  // Returns the element where the bool `condition` holds. Elsewhere `index` may lie outside the value; no element is
  // read there, and the result is unspecified. The default implementation clamps the index, and returns 0 for an empty
  // value.
  virtual loop::ScalarId element_where(loop::ScalarId condition, graph::ValueId value,
                                       const std::vector<sym::ExprId>& index);
  // Returns the index along dimension `dim` of `table` that has the value of `position`, an element of `index`. Where
  // the elements are not known to lie inside, the kernel reports an index out of range. The default implementation
  // fails: only a kernel of a device with reports has a place for them.
  virtual DataIndex data_index(loop::ScalarId position, graph::ValueId index, graph::ValueId table, size_t dim,
                               bool from_the_end);
  virtual loop::ScalarBuilder& scalars() = 0;
  virtual const graph::Graph& graph() = 0;
  // The type of result `result` of the node being lowered.
  virtual const graph::TensorType& result_type(size_t result) = 0;

  sym::ShapeEnv& env() { return graph().env(); }
  sym::ExprPool& pool() { return graph().pool(); }
  // Element of `value` broadcast to the rank of `index`: trailing dimensions aligned, size-1 dimensions read at 0.
  loop::ScalarId broadcast_element(graph::ValueId value, const std::vector<sym::ExprId>& index);
  // Argument i as an operand, cast to `dtype`. A tensor is broadcast and read at index; a number becomes a constant.
  // `dtype` is a storage type: an operand of another dtype is rounded to F16/BF16, like eager mode's conversion.
  loop::ScalarId operand(const OpArgs& args, size_t i, const std::vector<sym::ExprId>& index, DType dtype);
  // A number argument as a constant of `dtype` (F16/BF16: rounded to it, held in f32).
  loop::ScalarId number_operand(const OpArgs& args, size_t i, DType dtype);
  // An index variable whose value is an element (indirect access); the element must be integral.
  sym::ExprId indirect(loop::ScalarId scalar);

 private:
  // Whether a dimension of this size is broadcast at this index. Sizes found not to be broadcast are remembered in
  // wide_.
  bool is_read_at_zero(sym::ExprId size, sym::ExprId index);
  std::vector<sym::ExprId> wide_;
};

// For decompositions: appends nodes through their shape rules.
class GraphBuilder {
 public:
  explicit GraphBuilder(graph::Graph& graph) : graph_(graph) {}
  graph::Graph& graph() { return graph_; }
  // Appends a node whose operator has a shape rule, and CHECKs that the rule accepts. Returns the first result.
  graph::ValueId call(std::string_view op, std::vector<graph::Arg> args);
  std::vector<graph::ValueId> call_multi(std::string_view op, std::vector<graph::Arg> args);
  graph::Arg integer(int64_t v) { return graph_.pool().constant(v); }
  graph::Arg integers(const std::vector<int64_t>& vs);
  graph::ValueId cast(graph::ValueId v, DType dtype);  // adds no node when the value already has this dtype
  const std::vector<graph::NodeId>& appended() const { return appended_; }

 private:
  graph::Graph& graph_;
  std::vector<graph::NodeId> appended_;
};

}  // namespace cresset::ops
