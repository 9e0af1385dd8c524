// Shared code of pointwise shape and element rules: type promotion, result types, and adapters from scalar functions to
// OpDef members.
#pragma once

#include <initializer_list>
#include <span>

#include "ops/op_def.h"
#include "ops/scalar_math.h"

namespace cresset::ops {

// Dtypes with native support in an operator; all other dtypes end in Unsupported and go through ATen.
enum Accept : unsigned {
  kBool = 1,
  kInt = 2,
  kFloat = 4,
  kFloat8 = 8,
  kNumeric = kInt | kFloat,
  kReal = kBool | kInt | kFloat,
  kStored = kReal | kFloat8  // what kernels load, convert and store
};
bool accepts(unsigned accept, DType dtype);

// torch.result_type of these arguments: in a category, tensors with dimensions outrank 0-dim tensors, which outrank
// numbers. Absent (None) arguments are ignored.
DType result_dtype(const graph::Graph& graph, const OpArgs& args, std::span<const size_t> operands,
                   DType default_dtype);
// The dtype of a number argument, which is promoted like a Python scalar.
DType number_dtype(const graph::Arg& arg, DType default_dtype);

// The result of a TensorIterator over `operands`, computed in `common`, written as `result`. The first `kept` operands
// keep their own dtype (conditions); the remaining operands are converted.
Result<Types> pointwise_result(ShapeContext& shapes, const OpArgs& args, std::span<const size_t> operands, DType common,
                               DType result, size_t kept = 0);
// As promoted_shape, for operators which refuse tensors of different dtypes.
Result<Types> same_dtype_shape(ShapeContext& shapes, const OpArgs& args, std::span<const size_t> operands,
                               unsigned accept);

enum class Out : uint8_t {
  Common,  // the promoted dtype
  Float,   // the promoted dtype, integers as the default dtype
  Bool,
};
// The shape rule of an operator on `operands` with the usual promotion.
Result<Types> promoted_shape(ShapeContext& shapes, const OpArgs& args, std::span<const size_t> operands,
                             unsigned accept, Out out);

// The dtype of a comparison or test: the promoted dtype of the operands. Element rules do not know the default dtype.
// The shape rule (Out::Bool) refuses the single case which depends on it unless it is f32.
DType comparison_dtype(ElementContext& context, const OpArgs& args, std::span<const size_t> operands);

Fallback unsupported_dtype(DType dtype, std::string_view what);

inline constexpr size_t kOperands[] = {0, 1, 2, 3};
template <size_t N>
constexpr std::span<const size_t> first_operands() {
  return std::span<const size_t>(kOperands).first(N);
}

template <size_t N, unsigned Accepted, Out O>
Result<Types> shape_of(ShapeContext& shapes, const OpArgs& args) {
  return promoted_shape(shapes, args, first_operands<N>(), Accepted, O);
}

template <size_t N, unsigned Accepted>
Result<Types> same_dtype_shape_of(ShapeContext& shapes, const OpArgs& args) {
  return same_dtype_shape(shapes, args, first_operands<N>(), Accepted);
}

// ---- adapters: a function of scalars as an element rule. Operands have the result's dtype.

inline S operand(ElementContext& context, const OpArgs& args, size_t i, const Index& index, DType dtype) {
  return {&context.scalars(), context.operand(args, i, index, dtype)};
}

template <loop::Op O>
S apply1(S a) {
  return unary(O, a);
}
template <loop::Op O>
S apply2(S a, S b) {
  return binary(O, a, b);
}

template <S (*F)(S)>
loop::ScalarId element1(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return F(operand(context, args, 0, index, context.result_type(0).dtype)).id;
}
template <S (*F)(S, S)>
loop::ScalarId element2(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S a = operand(context, args, 0, index, dtype);
  return F(a, operand(context, args, 1, index, dtype)).id;
}
// As element2, but a number keeps the compute precision of its tensor: eager mode does not round it to F16/BF16.
template <S (*F)(S, S)>
loop::ScalarId arithmetic2(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const auto read = [&](size_t i) {
    return operand(context, args, i, index, args.is_tensor(i) ? dtype : compute_dtype(dtype));
  };
  const S a = read(0);
  return F(a, read(1)).id;
}
// With further number arguments, read from `args` by the function itself.
template <S (*F)(S, ElementContext&, const OpArgs&)>
loop::ScalarId element1_with(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return F(operand(context, args, 0, index, context.result_type(0).dtype), context, args).id;
}
// Tests: operands in their own promoted dtype, result bool.
template <S (*F)(S)>
loop::ScalarId test1(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return F(operand(context, args, 0, index, comparison_dtype(context, args, first_operands<1>()))).id;
}
template <S (*F)(S, S)>
loop::ScalarId test2(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = comparison_dtype(context, args, first_operands<2>());
  const S a = operand(context, args, 0, index, dtype);
  return F(a, operand(context, args, 1, index, dtype)).id;
}

// Argument i, a number, in the compute dtype of `like` (not rounded to F16/BF16).
inline S number_arg(ElementContext& context, const OpArgs& args, size_t i, S like) {
  return {&context.scalars(), context.number_operand(args, i, like.dtype())};
}
// A number argument as a constant; nullopt: a symbolic integer.
std::optional<double> constant_number(const graph::Graph& graph, const graph::Arg& arg);

}  // namespace cresset::ops
