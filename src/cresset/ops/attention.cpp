// Fused attention, called through ATen.
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;

// Both results are computed with the heads inside the sequence and returned transposed.
TensorType transposed_heads(ShapeContext& shapes, const TensorType& like, Sizes inner, DType dtype) {
  TensorType out = contiguous_like(shapes, like, std::move(inner), dtype);
  std::swap(out.sizes[1], out.sizes[2]);
  std::swap(out.strides[1], out.strides[2]);
  return out;
}

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
  const Sizes inner{query.sizes[0], query.sizes[2], query.sizes[1], query.sizes[3]};
  Types out;
  out.push_back(transposed_heads(shapes, query, inner, query.dtype));
  out.push_back(transposed_heads(shapes, query, Sizes(inner.begin(), inner.begin() + 3), compute_dtype(query.dtype)));
  return out;
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
