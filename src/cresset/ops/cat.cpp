// Concatenation. cat's arguments are windows of the result; stack is cat of unsqueezed tensors.
#include "ops/compose.h"
#include "ops/families.h"
#include "ops/rule_helpers.h"
#include "ops/view_groups.h"

namespace cresset::ops {
namespace {

using graph::MemoryFormat;
using graph::TensorType;
using graph::ValueId;
using sym::ExprId;

// cat ignores a 1-D tensor without elements, whatever the ranks of the other tensors. (Old programs start from
// torch.tensor([]), and key-value caches still do.)
bool is_skipped(ShapeContext& shapes, const TensorType& type) {
  return type.rank() == 1 && shapes.proved(shapes.pool().eq(type.sizes[0], shapes.pool().constant(0)));
}

// The format shared by all arguments, else row-major.
MemoryFormat joint_format(ShapeContext& shapes, const std::vector<const TensorType*>& types) {
  MemoryFormat joint = MemoryFormat::Contiguous;
  for (size_t i = 0; i < types.size(); ++i) {
    const MemoryFormat format = shapes.suggest_format(*types[i]);
    if (format == MemoryFormat::Contiguous || (i > 0 && format != joint)) return MemoryFormat::Contiguous;
    joint = format;
  }
  return joint;
}

// Checks that all sizes except `dim` agree, and adds the size of `dim` to `out`.
Result<bool> append(ShapeContext& shapes, Sizes& out, const TensorType& type, size_t dim) {
  if (type.rank() != out.size()) return shapes.invalid("the tensors have different numbers of dimensions");
  for (size_t i = 0; i < out.size(); ++i) {
    if (i == dim) continue;
    if (!shapes.require_equal(out[i], type.sizes[i])) return shapes.invalid("sizes differ apart from the dimension");
    if (shapes.pool().is_const(type.sizes[i])) out[i] = type.sizes[i];
  }
  out[dim] = shapes.pool().add(out[dim], type.sizes[dim]);
  return true;
}

Result<Types> cat_shape(ShapeContext& shapes, const OpArgs& args) {
  std::vector<const TensorType*> types;
  std::vector<const TensorType*> joined;
  for (const graph::OptionalValue& value : args.values(0)) {
    CRESSET_CHECK(value.has_value(), "cat of a missing tensor");
    types.push_back(&args.type(*value));
    if (types.back()->rank() == 0) return shapes.invalid("0-dim tensors cannot be concatenated");
    if (!is_skipped(shapes, *types.back())) joined.push_back(types.back());
  }
  if (types.empty()) return shapes.invalid("there is nothing to concatenate");
  TensorType out = with_shape(*types[0], {}, {});
  for (const TensorType* type : types) out.dtype = promote(out.dtype, type->dtype);
  if (joined.empty()) return one(contiguous_like(shapes, out, types[0]->sizes));
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), joined[0]->rank()));
  Sizes sizes = joined[0]->sizes;
  for (size_t i = 1; i < joined.size(); ++i) {
    CRESSET_TRY([[maybe_unused]] const bool fits, append(shapes, sizes, *joined[i], size_t(dim)));
  }
  Sizes strides = shapes.strides_for(joint_format(shapes, types), sizes);
  return one(with_shape(out, std::move(sizes), std::move(strides)));
}

// ---- stack(tensors, dim)

// ATen concatenates along `dim` and splits this dimension of the result, if `dim` is a dimension of the arguments.
Sizes stack_strides(ShapeContext& shapes, const std::vector<const TensorType*>& types, size_t dim) {
  const MemoryFormat format = joint_format(shapes, types);
  sym::ExprPool& pool = shapes.pool();
  const ExprId one_of = types[0]->sizes[dim];
  Sizes sizes = types[0]->sizes;
  sizes[dim] = pool.mul(pool.constant(int64_t(types.size())), one_of);
  Sizes strides = shapes.strides_for(format, sizes);
  strides.insert(strides.begin() + std::ptrdiff_t(dim), pool.mul(strides[dim], one_of));
  return strides;
}

// Where all sizes are known, dimensions of size 1 may make a layout row-major which is not row-major in general, and
// vice versa.
std::optional<Sizes> known_stack_strides(ShapeContext& shapes, const std::vector<const TensorType*>& types, size_t dim,
                                         const Sizes& sizes) {
  const auto is_known = [&](sym::ExprId e) { return shapes.pool().is_const(e); };
  std::vector<TensorType> apart;
  std::vector<const TensorType*> seen;
  for (const TensorType* type : types) {
    if (!std::all_of(type->sizes.begin(), type->sizes.end(), is_known) ||
        !std::all_of(type->strides.begin(), type->strides.end(), is_known))
      return std::nullopt;
    TensorType& one = apart.emplace_back(*type);
    one.sizes.push_back(shapes.pool().constant(1));
    one.strides.push_back(shapes.pool().constant(1));
  }
  for (const TensorType& type : apart) seen.push_back(&type);
  if (dim == types[0]->rank()) return shapes.strides_for(joint_format(shapes, seen), sizes);
  TensorType joined = *types[0];
  joined.sizes[dim] = shapes.pool().mul(joined.sizes[dim], shapes.pool().constant(int64_t(types.size())));
  joined.strides = shapes.strides_for(joint_format(shapes, types), joined.sizes);
  return known_view_strides(shapes.pool(), joined, sizes);
}

Result<Types> stack_shape(ShapeContext& shapes, const OpArgs& args) {
  const std::vector<graph::OptionalValue>& tensors = args.values(0);
  if (tensors.empty()) return shapes.invalid("there is nothing to stack");
  TensorType out = args.type(*tensors[0]);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), out.rank() + 1));
  std::vector<const TensorType*> types;
  for (const graph::OptionalValue& tensor : tensors) {
    const TensorType& type = args.type(*tensor);
    types.push_back(&type);
    if (type.rank() != out.rank()) return shapes.invalid("the tensors have different shapes");
    for (size_t i = 0; i < out.rank(); ++i)
      if (!shapes.require_equal(out.sizes[i], type.sizes[i]))
        return shapes.invalid("the tensors have different shapes");
    out.dtype = promote(out.dtype, type.dtype);
  }
  const bool splits = size_t(dim) < out.rank();
  if (splits) out.strides = stack_strides(shapes, types, size_t(dim));
  out.sizes.insert(out.sizes.begin() + std::ptrdiff_t(dim), shapes.pool().constant(int64_t(tensors.size())));
  if (const std::optional<Sizes> known = known_stack_strides(shapes, types, size_t(dim), out.sizes))
    return one(with_shape(out, out.sizes, *known));
  return one(splits ? out : contiguous_like(shapes, out, out.sizes));
}

Result<Values> stack_body(Compose& c, const OpArgs& args) {
  const int64_t rank = int64_t(args.type(*args.values(0)[0]).rank()) + 1;
  const int64_t dim = args.constant(1) < 0 ? args.constant(1) + rank : args.constant(1);
  const std::vector<graph::OptionalValue> tensors = args.values(0);  // a copy: adding nodes may move the arguments
  std::vector<graph::OptionalValue> parts;
  for (const graph::OptionalValue& tensor : tensors)
    parts.push_back(c.call("aten::unsqueeze", {*tensor, c.pool().constant(dim)}));
  return Values{c.call("aten::cat", {parts, c.pool().constant(dim)})};
}

constexpr OpDef kCatOps[] = {
    {.schema = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor", .op_class = OpClass::Concat, .shape = cat_shape},
    {.schema = "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
     .op_class = OpClass::Composite,
     .shape = stack_shape,
     .decompose = composed<stack_shape, stack_body>},
};

}  // namespace

std::span<const OpDef> cat_ops() { return kCatOps; }

}  // namespace cresset::ops
