// Nearest-neighbour upsampling: an element is a copy of an input element, so the operator is pointwise and fuses.
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using loop::Op;
using loop::ScalarBuilder;
using loop::ScalarId;
using sym::ExprId;
using sym::ExprPool;

// self, output_size, then an optional scale for each spatial dimension
constexpr size_t kFirstScale = 2;

template <size_t kSpatial>
Result<Types> nearest_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const Sizes& size = args.integers(1);
  ExprPool& pool = shapes.pool();
  if (self.rank() != kSpatial + 2 || size.size() != kSpatial) return shapes.invalid("needs a batch of images");
  Sizes sizes(self.sizes.begin(), self.sizes.begin() + 2);
  for (size_t i = 0; i < kSpatial; ++i) {
    if (!shapes.require(pool.ge(size[i], pool.constant(1))) ||
        !shapes.require(pool.ge(self.sizes[i + 2], pool.constant(1))))
      return shapes.invalid("input and output must not be empty");
    sizes.push_back(size[i]);
  }
  Sizes strides = shapes.strides_for(shapes.suggest_format(self), sizes);
  return one(with_shape(self, std::move(sizes), std::move(strides)));
}

// Returns a small power of two k with out == in * k which agrees with the scale, if given; otherwise 0. For such a k,
// rounding the scale loses nothing, and the source is index / k. ATen uses this rule for 1 and 2 regardless of the
// scale.
int64_t exact_factor(sym::ShapeEnv& env, ExprId in, ExprId out, const graph::Arg& scale) {
  constexpr int64_t kMaxFactor = 64;
  ExprPool& pool = env.pool();
  const double* given = std::get_if<double>(&scale);
  for (int64_t k = 1; k <= kMaxFactor; k *= 2)
    if (env.known_equal(out, pool.mul(in, pool.constant(k))))
      return k <= 2 || given == nullptr || *given == double(k) || *given <= 0 ? k : 0;
  return 0;
}

// The general rule, in single precision like ATen: min(floor(index * in / out), in - 1).
ExprId rounded_source(ElementContext& context, ExprId index, ExprId in, ExprId out, const graph::Arg& scale) {
  ScalarBuilder& scalars = context.scalars();
  const auto real = [&](ExprId e) { return scalars.cast(scalars.size(e), DType::F32); };
  const double* given = std::get_if<double>(&scale);
  const ScalarId ratio = given != nullptr && *given > 0 ? scalars.constant(DType::F32, double(float(1.0 / *given)))
                                                        : scalars.binary(Op::Div, real(in), real(out));
  const ScalarId place = scalars.unary(Op::Floor, scalars.binary(Op::Mul, real(index), ratio));
  const ScalarId last = scalars.size(context.pool().sub(in, context.pool().constant(1)));
  ScalarId source = scalars.binary(Op::Minimum, scalars.cast(place, DType::I64), last);
  // Without a given scale the rule above already gives this result.
  for (const int64_t k : {2, 1}) {
    ExprPool& pool = context.pool();
    const ExprId multiple = pool.mul(in, pool.constant(k));
    if (given == nullptr || context.env().known_not_equal(out, multiple)) continue;
    const ScalarId is_multiple = scalars.binary(Op::Eq, scalars.size(out), scalars.size(multiple));
    source = scalars.select(is_multiple, scalars.size(pool.floor_div(index, pool.constant(k))), source);
  }
  return context.indirect(source);
}

ScalarId nearest_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const TensorType& self = args.tensor(0);
  const TensorType& type = context.result_type(result);
  ExprPool& pool = context.pool();
  Index from = index;
  for (size_t dim = 2; dim < index.size(); ++dim) {
    const graph::Arg& scale = args[kFirstScale + dim - 2];
    const int64_t factor = exact_factor(context.env(), self.sizes[dim], type.sizes[dim], scale);
    from[dim] = factor > 0 ? context.env().simplify(pool.floor_div(index[dim], pool.constant(factor)))
                           : rounded_source(context, index[dim], self.sizes[dim], type.sizes[dim], scale);
  }
  return context.element(args.value(0), from);
}

constexpr OpClass kPointwise = OpClass::Pointwise;

constexpr OpDef kPoolNearestOps[] = {
    {.schema = "aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
     .op_class = kPointwise,
     .shape = nearest_shape<1>,
     .element = nearest_element},
    {.schema = "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
               "scales_w=None) -> Tensor",
     .op_class = kPointwise,
     .shape = nearest_shape<2>,
     .element = nearest_element},
    {.schema = "aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
               "scales_h=None, float? scales_w=None) -> Tensor",
     .op_class = kPointwise,
     .shape = nearest_shape<3>,
     .element = nearest_element},
};

}  // namespace

std::span<const OpDef> pool_nearest_ops() { return kPoolNearestOps; }

}  // namespace cresset::ops
