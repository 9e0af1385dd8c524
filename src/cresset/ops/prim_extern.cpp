// Products and convolutions with an elementwise epilogue, as offered by libraries. `post` names the epilogue: relu,
// gelu, gelu_tanh, silu, sigmoid, tanh, hardswish or hardsigmoid.
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;

// post(bias + mat1 @ mat2)
Result<Types> linear_epilogue_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &a = args.tensor(1), &b = args.tensor(2);
  if (a.rank() != 2 || b.rank() != 2) return shapes.invalid("needs two matrices");
  return one(contiguous_like(shapes, a, {a.sizes[0], b.sizes[1]}));
}

// The arguments of aten::convolution, then post.
Result<Types> convolution_epilogue_shape(ShapeContext& shapes, const OpArgs& args) {
  return find("aten::convolution")->shape(shapes, args);
}

constexpr OpDef kPrimExternOps[] = {
    {.schema = "prim::linear_epilogue(Tensor? bias, Tensor mat1, Tensor mat2, str post) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = linear_epilogue_shape,
     .never_raises = true},
    {.schema = "prim::convolution_epilogue(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
               "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, "
               "str post) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = convolution_epilogue_shape,
     .never_raises = true},
};

}  // namespace

std::span<const OpDef> prim_extern_ops() { return kPrimExternOps; }

}  // namespace cresset::ops
