// Reductions with several steps: means, variances, norms, extremes with their positions. All compute in the compute
// dtype and round once, at the end.
#include <algorithm>
#include <cmath>

#include "ops/compose.h"
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using graph::ValueId;
using sym::ExprId;
using Dims = std::vector<int64_t>;

const graph::Arg kNoDims = graph::None{};

// ---- mean

template <int DimArg, int KeepdimArg, size_t DtypeArg>
struct Mean {
  static const graph::Arg& dim(const OpArgs& args) { return DimArg < 0 ? kNoDims : args[DimArg]; }
  static bool keepdim(const OpArgs& args) { return KeepdimArg >= 0 && args.flag(KeepdimArg); }

  static Result<Types> shape(ShapeContext& shapes, const OpArgs& args) {
    const TensorType& self = args.tensor(0);
    const DType dtype = args.dtype(DtypeArg).value_or(self.dtype);
    if (!is_float(dtype)) return shapes.invalid("mean needs a floating point dtype");
    if (!accepts(kReal, self.dtype)) return unsupported_dtype(self.dtype, "mean");
    CRESSET_TRY(const Dims dims, reduced_dims(shapes, dim(args), self.rank()));
    return Types{reduced_type(shapes, self, dims, keepdim(args), dtype)};
  }

  static Result<Values> body(Compose& c, const OpArgs& args) {
    const ValueId self = args.value(0);
    const DType dtype = args.dtype(DtypeArg).value_or(c.type(self).dtype);
    const Dims dims = reduced_dims(c.graph(), dim(args), c.type(self).rank());
    const ValueId wide = c.cast(self, compute_dtype(dtype));
    const ValueId mean = c.div(c.sum(wide, dims, keepdim(args)), element_count(c.pool(), c.type(self), dims));
    return Values{c.cast(mean, dtype)};
  }
};

// ---- variance, two-pass: the mean first, then the squares around it. Computed in f64, as in eager mode

Result<Types> variance_types(ShapeContext& shapes, const OpArgs& args, size_t results) {
  const TensorType& self = args.tensor(0);
  if (!is_float(self.dtype)) return unsupported_dtype(self.dtype, "var");
  if (!args.is_none(2) && !constant_number(args.graph(), args[2])) return shapes.unsupported("a symbolic correction");
  CRESSET_TRY(const Dims dims, reduced_dims(shapes, args[1], self.rank()));
  return Types(results, reduced_type(shapes, self, dims, args.flag(3), self.dtype));
}
template <size_t N>
Result<Types> variance_shape(ShapeContext& shapes, const OpArgs& args) {
  return variance_types(shapes, args, N);
}

// count - correction, not below 0: with too few elements the result is inf or NaN.
Result<graph::Arg> degrees_of_freedom(Compose& c, const OpArgs& args, ExprId count) {
  const double correction = args.is_none(2) ? 1.0 : constant_number(args.graph(), args[2]).value();
  sym::ExprPool& pool = c.pool();
  if (std::isinf(correction)) return graph::Arg(std::max(0.0, -correction));
  if (correction == std::floor(correction)) {
    const ExprId left = pool.sub(count, pool.constant(static_cast<int64_t>(correction)));
    return graph::Arg(pool.max(left, pool.constant(0)));
  }
  if (!pool.is_const(count))
    return Fallback{FallbackReason::UnsupportedArguments, "a fractional correction of a dynamic size", ""};
  return graph::Arg(std::max(0.0, static_cast<double>(pool.const_value(count)) - correction));
}

struct Moments {
  ValueId mean, variance;  // the mean keeps its dimensions
};

Result<Moments> moments(Compose& c, const OpArgs& args, const Dims& dims, bool keepdim) {
  const ValueId self = args.value(0);
  const ExprId count = element_count(c.pool(), c.type(self), dims);
  CRESSET_TRY(graph::Arg freedom, degrees_of_freedom(c, args, count));
  const ValueId x = c.cast(self, DType::F64);
  const ValueId mean = c.div(c.sum(x, dims, true), count);
  const ValueId centered = c.sub(x, mean);
  const ValueId squares = c.sum(c.mul(centered, centered), dims, keepdim);
  return Moments{mean, c.div(squares, std::move(freedom))};
}

template <bool Root, bool WithMean>
Result<Values> variance_body(Compose& c, const OpArgs& args) {
  const TensorType self = args.tensor(0);
  const Dims dims = reduced_dims(c.graph(), args[1], self.rank());
  const bool keepdim = args.flag(3);
  CRESSET_TRY(const Moments m, moments(c, args, dims, keepdim));
  const ValueId spread = Root ? c.unary("aten::sqrt", m.variance) : m.variance;
  Values out{c.cast(spread, self.dtype)};
  if (!WithMean) return out;
  const ValueId mean = keepdim ? m.mean : c.view(m.mean, c.type(m.variance).sizes);
  out.push_back(c.cast(mean, self.dtype));
  return out;
}

// ---- norms

double norm_order(const OpArgs& args) { return args.is_none(1) ? 2.0 : constant_number(args.graph(), args[1]).value(); }

template <int DimArg, int KeepdimArg, int DtypeArg>
struct Norm {
  static const graph::Arg& dim(const OpArgs& args) { return DimArg < 0 ? kNoDims : args[DimArg]; }
  static bool keepdim(const OpArgs& args) { return KeepdimArg >= 0 && args.flag(KeepdimArg); }
  static DType dtype(const OpArgs& args) {
    const DType self = args.tensor(0).dtype;
    return DtypeArg < 0 ? self : args.dtype(DtypeArg).value_or(self);
  }

  static Result<Types> shape(ShapeContext& shapes, const OpArgs& args) {
    const TensorType& self = args.tensor(0);
    if (!is_float(self.dtype) || !is_float(dtype(args))) return unsupported_dtype(self.dtype, "a norm");
    if (!args.is_none(1) && !constant_number(args.graph(), args[1])) return shapes.unsupported("a symbolic order");
    CRESSET_TRY(const Dims dims, reduced_dims(shapes, dim(args), self.rank()));
    if (std::isinf(norm_order(args)) && !require_elements(shapes, self, dims))
      return shapes.unsupported("an infinity norm of no elements");
    return Types{reduced_type(shapes, self, dims, keepdim(args), dtype(args))};
  }

  static ValueId fold(Compose& c, ValueId x, double order, const Dims& dims, bool keep) {
    if (order == 2.0) return c.unary("aten::sqrt", c.sum(c.mul(x, x), dims, keep));
    if (order == 0.0) return c.sum(c.cast(c.ne(x, 0.0), c.type(x).dtype), dims, keep);
    const ValueId size = c.unary("aten::abs", x);
    if (order == 1.0) return c.sum(size, dims, keep);
    if (std::isinf(order)) return c.fold(order > 0 ? "aten::amax" : "aten::amin", size, dims, keep);
    return c.pow(c.sum(c.pow(size, order), dims, keep), 1.0 / order);
  }

  static Result<Values> body(Compose& c, const OpArgs& args) {
    const Dims dims = reduced_dims(c.graph(), dim(args), args.tensor(0).rank());
    const DType out = dtype(args);
    const ValueId x = c.cast(args.value(0), compute_dtype(out));
    return Values{c.cast(fold(c, x, norm_order(args), dims, keepdim(args)), out)};
  }
};

// ---- log(sum(exp(x))), shifted by the maximum; an infinite maximum would give inf - inf

Result<Types> logsumexp_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (!is_float(self.dtype)) return unsupported_dtype(self.dtype, "logsumexp");
  CRESSET_TRY(const Dims dims, reduced_dims(shapes, args[1], self.rank()));
  if (self.rank() > 0 && args.integers(1).empty()) return shapes.unsupported("logsumexp over no dimension");
  return Types{reduced_type(shapes, self, dims, args.flag(2), self.dtype)};
}

Result<Values> logsumexp_body(Compose& c, const OpArgs& args) {
  const TensorType self = args.tensor(0);
  const Dims dims = reduced_dims(c.graph(), args[1], self.rank());
  const ValueId x = c.cast(args.value(0), compute_dtype(self.dtype));
  const ValueId greatest = c.fold("prim::greatest", x, dims, true);
  const ValueId shift = c.where(c.unary("aten::isinf", greatest), 0.0, greatest);
  const ValueId sum = c.sum(c.unary("aten::exp", c.sub(x, shift)), dims, true);
  ValueId out = c.cast(c.add(c.unary("aten::log", sum), shift), self.dtype);
  if (!args.flag(2) && !dims.empty()) {
    std::vector<ExprId> sizes;
    for (size_t d = 0; d < self.rank(); ++d)
      if (!std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(d))) sizes.push_back(self.sizes[d]);
    out = c.view(out, sizes);
  }
  return Values{out};
}

// ---- an extreme along a dimension, with its position

Result<Types> extreme_with_index_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (!accepts(kNumeric, self.dtype)) return unsupported_dtype(self.dtype, "an extreme with its position");
  CRESSET_TRY(const Dims dims, reduced_dims(shapes, args[1], self.rank()));
  if (!require_elements(shapes, self, dims)) return shapes.invalid("an extreme over no elements");
  return Types{reduced_type(shapes, self, dims, args.flag(2), self.dtype),
               reduced_type(shapes, self, dims, args.flag(2), DType::I64)};
}

template <bool Greatest>
Result<Values> extreme_with_index_body(Compose& c, const OpArgs& args) {
  const Dims dims = reduced_dims(c.graph(), args[1], args.tensor(0).rank());
  const ValueId value = c.fold(Greatest ? "aten::amax" : "aten::amin", args.value(0), dims, args.flag(2));
  const ValueId position = c.call(Greatest ? "aten::argmax" : "aten::argmin", {args.value(0), args[1], args[2]});
  return Values{value, position};
}

Result<Types> aminmax_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (!accepts(kReal, self.dtype)) return unsupported_dtype(self.dtype, "aminmax");
  CRESSET_TRY(const Dims dims, reduced_dims(shapes, args[1], self.rank()));
  if (!require_elements(shapes, self, dims)) return shapes.invalid("an extreme over no elements");
  return Types(2, reduced_type(shapes, self, dims, args.flag(2), self.dtype));
}
Result<Values> aminmax_body(Compose& c, const OpArgs& args) {
  const Dims dims = reduced_dims(c.graph(), args[1], args.tensor(0).rank());
  return Values{c.fold("aten::amin", args.value(0), dims, args.flag(2)),
                c.fold("aten::amax", args.value(0), dims, args.flag(2))};
}

#define COMPOSITE(text, shape_rule, body)                                         \
  OpDef {                                                                         \
    .schema = "aten::" text, .op_class = OpClass::Composite, .shape = shape_rule, \
    .decompose = composed<shape_rule, body>                                       \
  }

using MeanAll = Mean<-1, -1, 1>;
using MeanDim = Mean<1, 2, 3>;
using VectorNorm = Norm<2, 3, 4>;
using NormAll = Norm<-1, -1, -1>;
using NormDim = Norm<2, 3, -1>;
using NormDimDtype = Norm<2, 3, 4>;
using NormDtype = Norm<-1, -1, 2>;

const OpDef kReduceCompositeOps[] = {
    COMPOSITE("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", MeanAll::shape, MeanAll::body),
    COMPOSITE("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
              MeanDim::shape, MeanDim::body),
    COMPOSITE("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
              variance_shape<1>, (variance_body<false, false>)),
    COMPOSITE("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
              variance_shape<1>, (variance_body<true, false>)),
    COMPOSITE("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
              "(Tensor, Tensor)",
              variance_shape<2>, (variance_body<false, true>)),
    COMPOSITE("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
              "(Tensor, Tensor)",
              variance_shape<2>, (variance_body<true, true>)),
    COMPOSITE("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
              "dtype=None) -> Tensor",
              VectorNorm::shape, VectorNorm::body),
    COMPOSITE("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", NormAll::shape, NormAll::body),
    COMPOSITE("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", NormDim::shape,
              NormDim::body),
    COMPOSITE("norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> "
              "Tensor",
              NormDimDtype::shape, NormDimDtype::body),
    COMPOSITE("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", NormDtype::shape,
              NormDtype::body),
    COMPOSITE("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp_shape, logsumexp_body),
    COMPOSITE("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
              extreme_with_index_shape, extreme_with_index_body<true>),
    COMPOSITE("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
              extreme_with_index_shape, extreme_with_index_body<false>),
    COMPOSITE("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", aminmax_shape,
              aminmax_body),
};

}  // namespace

std::span<const OpDef> reduce_composite_ops() { return kReduceCompositeOps; }

}  // namespace cresset::ops
