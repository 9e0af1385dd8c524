// Fused attention, called through ATen.
#include "ops/attention.h"

#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;

// A result of sizes (batch, heads, length, ...) whose heads lie inside of the lengths in memory.
TensorType with_heads_inside(ShapeContext& shapes, const TensorType& like, Sizes sizes, DType dtype) {
  std::swap(sizes[1], sizes[2]);
  TensorType out = contiguous_like(shapes, like, std::move(sizes), dtype);
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
  // The kernel divides by these sizes. Eager mode never calls it with empty tensors.
  for (const sym::ExprId size : {query.sizes[1], query.sizes[2], key.sizes[2]})
    if (!shapes.require(shapes.pool().ge(size, shapes.pool().constant(1))))
      return shapes.invalid("nothing to attend to");
  TensorType output = with_shape(query, query.sizes, shapes.like_strides(query));
  // The logarithms are computed with the heads innermost and returned transposed.
  TensorType logsumexp =
      with_heads_inside(shapes, query, {query.sizes[0], query.sizes[1], query.sizes[2]}, compute_dtype(query.dtype));
  return Types{std::move(output), std::move(logsumexp)};
}

// The memory order of all gradients is batch, sequence, heads, features, independent of the arguments' order.
Result<Types> flash_attention_backward_shape(ShapeContext& shapes, const OpArgs& args) {
  Types gradients;
  for (size_t i = 1; i < 4; ++i) {
    const TensorType& of = args.tensor(i);
    if (of.rank() != 4 || !is_float(of.dtype)) return shapes.invalid("needs floats in tensors of 4 dimensions");
    gradients.push_back(with_heads_inside(shapes, of, of.sizes, of.dtype));
  }
  return gradients;
}

// A GPU's kernels leave the result in the query's memory order, or in order batch, sequence, heads, features: the
// latter always where the derivative reads the result in that order.
Result<TensorType> gpu_output(ShapeContext& shapes, const OpArgs& args, bool always_inside = false) {
  const TensorType &query = args.tensor(0), &key = args.tensor(1), &value = args.tensor(2);
  if (query.rank() != 4 || key.rank() != 4 || value.rank() != 4) return shapes.invalid("needs tensors of 4 dimensions");
  if (!shapes.require_equal(query.sizes[3], key.sizes[3])) return shapes.invalid("query and key differ in head size");
  if (!shapes.require_equal(key.sizes[2], value.sizes[2])) return shapes.invalid("key and value differ in length");
  const bool even = shapes.require_equal(query.sizes[3], value.sizes[3]);
  if (even && !always_inside) return with_shape(query, query.sizes, shapes.like_strides(query));
  return with_heads_inside(shapes, query, {query.sizes[0], query.sizes[1], query.sizes[2], value.sizes[3]},
                           query.dtype);
}

Result<Types> gpu_attention_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(TensorType out, gpu_output(shapes, args));
  return Types{std::move(out)};
}

// With logarithms of the sums for the derivative, rows of the efficient kernel padded to multiples of 32.
Result<Types> gpu_attention_forward_shape(ShapeContext& shapes, const OpArgs& args) {
  const bool efficient = AttentionKernel{args.constant(6)} == AttentionKernel::Efficient;
  CRESSET_TRY(TensorType out, gpu_output(shapes, args, efficient));
  constexpr int64_t kMultiple = 32;
  sym::ExprPool& pool = shapes.pool();
  sym::ExprId length = out.sizes[2];
  if (efficient) {
    const sym::ExprId multiple = pool.constant(kMultiple);
    length = pool.mul(pool.floor_div(pool.add(length, pool.constant(kMultiple - 1)), multiple), multiple);
  }
  TensorType logsumexp = contiguous_like(shapes, out, {out.sizes[0], out.sizes[1], length}, DType::F32);
  return Types{std::move(out), std::move(logsumexp)};
}

Result<Types> gpu_attention_backward_shape(ShapeContext& shapes, const OpArgs& args) {
  if (AttentionKernel{args.constant(9)} != AttentionKernel::Flash) return flash_attention_backward_shape(shapes, args);
  Types gradients;
  for (size_t i = 1; i < 4; ++i)
    gradients.push_back(with_shape(args.tensor(i), args.tensor(i).sizes, shapes.like_strides(args.tensor(i))));
  return gradients;
}

constexpr OpDef kAttentionOps[] = {
    {.schema = "cresset::attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool causal, float? scale, "
               "bool grouped) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = gpu_attention_shape},
    {.schema = "cresset::attention_forward(Tensor query, Tensor key, Tensor value, Tensor? bias, bool causal, float? "
               "scale, int kernel) -> (Tensor, Tensor)",
     .op_class = OpClass::Extern,
     .shape = gpu_attention_forward_shape},
    {.schema = "cresset::attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor? bias, "
               "Tensor out, Tensor logsumexp, bool causal, float? scale, int kernel) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Extern,
     .shape = gpu_attention_backward_shape},
    {.schema = "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
               "dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, "
               "Tensor logsumexp)",
     .op_class = OpClass::Extern,
     .shape = flash_attention_shape,
     .traits = {.draws = true, .dropout = 3}},
    {.schema =
         "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, "
         "Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, "
         "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
     .op_class = OpClass::Extern,
     .shape = flash_attention_backward_shape},
};

}  // namespace

std::span<const OpDef> attention_ops() { return kAttentionOps; }

}  // namespace cresset::ops
