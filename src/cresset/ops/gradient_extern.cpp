// Derivatives which stay with ATen and have the size of their input: of resized images, pools and windows.
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::MemoryFormat;
using graph::TensorType;

// (grad, ...), with the sizes in argument kSizes.
template <size_t kSizes>
Result<Types> of_sizes(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& grad = args.tensor(0);
  const std::vector<sym::ExprId>& sizes = args.integers(kSizes);
  if (!is_float(grad.dtype)) return unsupported_dtype(grad.dtype, "this derivative");
  // The meta kernels know which operators keep channels last.
  if (grad.rank() == 4 && shapes.suggest_format(grad) != MemoryFormat::Contiguous)
    return shapes.unsupported("gradients with channels last");
  return one(contiguous_like(shapes, grad, sizes));
}

// (grad, input, ...)
Result<Types> of_input(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &grad = args.tensor(0), &input = args.tensor(1);
  if (!is_float(input.dtype) || grad.dtype != input.dtype) return unsupported_dtype(input.dtype, "this derivative");
  if (grad.rank() != input.rank()) return shapes.invalid("the gradient has another rank");
  // The result has the input's format, regardless of the gradient's format.
  const MemoryFormat format = input.rank() == 4 ? shapes.suggest_format(input) : MemoryFormat::Contiguous;
  return one(with_shape(input, input.sizes, shapes.strides_for(format, input.sizes)));
}

// (grad of a loss for each sequence, log probabilities, ...)
Result<Types> of_sequences(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &grad = args.tensor(0), &logs = args.tensor(1);
  if (!is_float(logs.dtype) || grad.dtype != logs.dtype) return unsupported_dtype(logs.dtype, "this derivative");
  return one(contiguous_like(shapes, logs, logs.sizes));
}

template <Result<Types> (*Shape)(ShapeContext&, const OpArgs&)>
constexpr OpDef row(std::string_view schema) {
  return {.schema = schema, .op_class = OpClass::Extern, .shape = Shape};
}

constexpr OpDef kGradientExternOps[] = {
    row<of_sizes<1>>(
        "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor"),
    row<of_sizes<2>>(
        "aten::upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? "
        "scales=None) -> Tensor"),
    row<of_sizes<2>>(
        "aten::upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? "
        "scales_h=None, float? scales_w=None) -> Tensor"),
    row<of_sizes<2>>(
        "aten::upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool "
        "align_corners, float? scales=None) -> Tensor"),
    row<of_sizes<2>>(
        "aten::upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
        "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor"),
    row<of_input>(
        "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor"),
    row<of_input>(
        "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
        "int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor"),
    row<of_sequences>(
        "aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
        "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor"),
};

}  // namespace

std::span<const OpDef> gradient_extern_ops() { return kGradientExternOps; }

}  // namespace cresset::ops
