// Softmax and its logarithm. The results are row-major regardless of the argument's strides, as in ATen.
#include <cmath>

#include "ops/compose.h"
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using graph::ValueId;
using Dims = std::vector<int64_t>;

Result<Types> softmax_type(ShapeContext& shapes, const OpArgs& args, DType dtype) {
  TensorType out = args.tensor(0);
  if (!is_float(dtype) || !accepts(kReal, out.dtype)) return unsupported_dtype(out.dtype, "softmax");
  CRESSET_TRY([[maybe_unused]] const Dims dims, reduced_dims(shapes, args[1], out.rank()));
  out.dtype = dtype;
  out.strides = shapes.contiguous_strides(out.sizes);
  return Types{std::move(out)};
}

Result<Types> softmax_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.flag(2)) return shapes.unsupported("half_to_float, which only CUDA knows");
  return softmax_type(shapes, args, args.tensor(0).dtype);
}

// The shared parts: x - max, its exp, and the sum of the exp.
struct Parts {
  ValueId greatest, shifted, powers, sum;
};

Parts parts(Compose& c, const OpArgs& args, DType dtype) {
  const Dims dims = reduced_dims(c.graph(), args[1], args.tensor(0).rank());
  const ValueId x = c.cast(args.value(0), compute_dtype(dtype));
  Parts p;
  p.greatest = c.fold("prim::greatest", x, dims, true);
  p.shifted = c.sub(x, p.greatest);
  p.powers = c.unary("aten::exp", p.shifted);
  p.sum = c.sum(p.powers, dims, true);
  return p;
}

Result<Values> softmax_body(Compose& c, const OpArgs& args) {
  const DType dtype = args.tensor(0).dtype;
  const Parts p = parts(c, args, dtype);
  return Values{c.cast(c.div(p.powers, p.sum), dtype)};
}

Result<Values> log_softmax_body(Compose& c, const OpArgs& args) {
  const DType dtype = args.tensor(0).dtype;
  const Parts p = parts(c, args, dtype);
  return Values{c.cast(c.sub(p.shifted, c.unary("aten::log", p.sum)), dtype)};
}

// A row which contains only -inf gives zeros, not NaN.
Result<Types> safe_softmax_shape(ShapeContext& shapes, const OpArgs& args) {
  return softmax_type(shapes, args, args.dtype(2).value_or(args.tensor(0).dtype));
}

Result<Values> safe_softmax_body(Compose& c, const OpArgs& args) {
  const DType dtype = args.dtype(2).value_or(args.tensor(0).dtype);
  const Parts p = parts(c, args, dtype);
  const ValueId masked = c.eq(p.greatest, -INFINITY);
  return Values{c.cast(c.where(masked, 0.0, c.div(p.powers, p.sum)), dtype)};
}

const OpDef kSoftmaxOps[] = {
    {.schema = "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     .op_class = OpClass::Composite,
     .shape = softmax_shape,
     .decompose = composed<softmax_shape, softmax_body>},
    {.schema = "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     .op_class = OpClass::Composite,
     .shape = softmax_shape,
     .decompose = composed<softmax_shape, log_softmax_body>},
    {.schema = "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     .op_class = OpClass::Composite,
     .shape = safe_softmax_shape,
     .decompose = composed<safe_softmax_shape, safe_softmax_body>},
};

}  // namespace

std::span<const OpDef> softmax_ops() { return kSoftmaxOps; }

}  // namespace cresset::ops
