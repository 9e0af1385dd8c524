// Operators with boolean results: comparisons, tests of an element, logical connectives.
#include <cmath>

#include "ops/families.h"
#include "ops/pointwise_types.h"

namespace cresset::ops {
namespace {

S logical_not(S x) { return negate(x.cast(DType::Bool)); }
S logical_and(S a, S b) { return both(a.cast(DType::Bool), b.cast(DType::Bool)); }
S logical_or(S a, S b) { return either(a.cast(DType::Bool), b.cast(DType::Bool)); }
S logical_xor(S a, S b) { return ne(a.cast(DType::Bool), b.cast(DType::Bool)); }

S isnan(S x) { return is_float(x.dtype()) ? is_nan(x) : x.truth(false); }
S isinf(S x) { return is_float(x.dtype()) ? unary(loop::Op::IsInf, x) : x.truth(false); }
S isposinf(S x) { return is_float(x.dtype()) ? eq(x, INFINITY) : x.truth(false); }
S isneginf(S x) { return is_float(x.dtype()) ? eq(x, -INFINITY) : x.truth(false); }

// copysign extracts the sign bit of a float, since comparisons do not see the sign of -0.0 and NaN.
S signbit(S x) {
  if (x.dtype() == DType::Bool) return x.truth(false);
  if (!is_float(x.dtype())) return lt(x, 0);
  return lt(binary(loop::Op::CopySign, x.number(1), x), 0);
}

// Operands keep their own dtypes: only their truth values matter.
template <S (*F)(S, S)>
loop::ScalarId connective(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const S a{&context.scalars(), context.operand(args, 0, index, DType::Bool)};
  return F(a, a.with(context.operand(args, 1, index, DType::Bool))).id;
}

#define TEST(name, function)                                                           \
  OpDef {                                                                              \
    .schema = "aten::" name "(Tensor self) -> Tensor", .op_class = OpClass::Pointwise, \
    .shape = shape_of<1, kReal, Out::Bool>, .element = test1<function>                 \
  }
#define COMPARISON(name, function)                                                                          \
  OpDef{.schema = "aten::" name ".Tensor(Tensor self, Tensor other) -> Tensor",                             \
        .op_class = OpClass::Pointwise,                                                                     \
        .shape = shape_of<2, kReal, Out::Bool>,                                                             \
        .element = test2<function>},                                                                        \
      OpDef {                                                                                               \
    .schema = "aten::" name ".Scalar(Tensor self, Scalar other) -> Tensor", .op_class = OpClass::Pointwise, \
    .shape = shape_of<2, kReal, Out::Bool>, .element = test2<function>                                      \
  }
#define CONNECTIVE(name, function)                                                                   \
  OpDef {                                                                                            \
    .schema = "aten::" name "(Tensor self, Tensor other) -> Tensor", .op_class = OpClass::Pointwise, \
    .shape = shape_of<2, kReal, Out::Bool>, .element = connective<function>                          \
  }

const OpDef kCompareOps[] = {
    COMPARISON("eq", eq),
    COMPARISON("ne", ne),
    COMPARISON("lt", lt),
    COMPARISON("le", le),
    COMPARISON("gt", gt),
    COMPARISON("ge", ge),
    TEST("logical_not", logical_not),
    TEST("isnan", isnan),
    TEST("isinf", isinf),
    TEST("isposinf", isposinf),
    TEST("isneginf", isneginf),
    TEST("signbit", signbit),
    CONNECTIVE("logical_and", logical_and),
    CONNECTIVE("logical_or", logical_or),
    CONNECTIVE("logical_xor", logical_xor),
};

}  // namespace

std::span<const OpDef> compare_ops() { return kCompareOps; }

}  // namespace cresset::ops
