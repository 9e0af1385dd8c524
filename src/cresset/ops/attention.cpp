// Fused attention, called through ATen.
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;

Result<Types> flash_attention_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &query = args.tensor(0), &key = args.tensor(1), &value = args.tensor(2);
  if (query.rank() != 4 || key.rank() != 4 || value.rank() != 4) return shapes.invalid("needs tensors of 4 dimensions");
  if (query.dtype != key.dtype || query.dtype != value.dtype || !is_float(query.dtype))
    return shapes.invalid("query, key and value need one floating dtype");
  if (!shapes.require_equal(query.sizes[3], key.sizes[3]) || !shapes.require_equal(query.sizes[3], value.sizes[3]))
    return shapes.invalid("query, key and value need one head size");
  if (!shapes.require_equal(query.sizes[0], key.sizes[0]) || !shapes.require_equal(query.sizes[0], value.sizes[0]))
    return shapes.invalid("the batch sizes differ");
  if (!shapes.require_equal(key.sizes[2], value.sizes[2])) return shapes.invalid("key and value differ in length");
  TensorType output = with_shape(query, query.sizes, shapes.like_strides(query));
  // The logarithms are computed with the heads innermost and returned transposed.
  TensorType logsumexp =
      contiguous_like(shapes, query, {query.sizes[0], query.sizes[2], query.sizes[1]}, compute_dtype(query.dtype));
  std::swap(logsumexp.sizes[1], logsumexp.sizes[2]);
  std::swap(logsumexp.strides[1], logsumexp.strides[2]);
  return Types{std::move(output), std::move(logsumexp)};
}

constexpr OpDef kRows[] = {
    {.schema = "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
               "dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, "
               "Tensor logsumexp)",
     .op_class = OpClass::Extern,
     .shape = flash_attention_shape},
};

}  // namespace

std::span<const OpDef> attention_ops() { return kRows; }

}  // namespace cresset::ops
