// Views which rearrange whole dimensions: view, permute, expand, squeeze and similar operators. InvalidArguments means
// that eager mode would raise; strides are eager mode's.
#include "ops/families.h"
#include "ops/rule_helpers.h"
#include "ops/view_groups.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using sym::ExprId;
using sym::ExprPool;

Index identity_view(ElementContext&, const OpArgs&, size_t, const Index& index) { return index; }

Result<Types> alias_shape(ShapeContext&, const OpArgs& args) { return one(args.tensor(0)); }

// ---- view, reshape

Result<Types> view_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY(Sizes sizes, infer_sizes(shapes, args.integers(1), self.sizes));
  CRESSET_TRY(Sizes strides, view_strides(shapes, self, sizes));
  return one(with_shape(self, std::move(sizes), std::move(strides)));
}

Index view_index(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  return reshape_index(context.env(), args.tensor(0).sizes, context.result_type(result).sizes, index);
}

// The caller already computed the strides.
Result<Types> reshape_alias_shape(ShapeContext&, const OpArgs& args) {
  return one(with_shape(args.tensor(0), args.integers(1), args.integers(2)));
}

// ---- permute, transpose, t

Result<std::vector<size_t>> permutation(ShapeContext& shapes, const OpArgs& args) {
  const size_t rank = args.tensor(0).rank();
  const std::vector<ExprId>& dims = args.integers(1);
  if (dims.size() != rank) return shapes.invalid("the number of dimensions does not match");
  std::vector<size_t> out;
  std::vector<bool> seen(rank, false);
  for (const ExprId d : dims) {
    CRESSET_TRY(const int64_t dim, shapes.wrap_dim(d, rank));
    if (seen[size_t(dim)]) return shapes.invalid("a dimension is repeated");
    seen[size_t(dim)] = true;
    out.push_back(size_t(dim));
  }
  return out;
}

Result<Types> permute_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY(const std::vector<size_t> dims, permutation(shapes, args));
  TensorType out = with_shape(self, {}, {});
  for (const size_t dim : dims) {
    out.sizes.push_back(self.sizes[dim]);
    out.strides.push_back(self.strides[dim]);
  }
  return one(std::move(out));
}

Index permute_view(ElementContext&, const OpArgs& args, size_t, const Index& index) {
  const std::vector<int64_t> dims = args.constants(1);
  const auto rank = static_cast<int64_t>(index.size());
  Index out(index.size());
  for (size_t i = 0; i < index.size(); ++i) out[size_t(dims[i] < 0 ? dims[i] + rank : dims[i])] = index[i];
  return out;
}

Result<Types> transpose_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  CRESSET_TRY(const int64_t a, shapes.wrap_dim(args.integer(1), out.rank()));
  CRESSET_TRY(const int64_t b, shapes.wrap_dim(args.integer(2), out.rank()));
  if (out.rank() == 0) return one(std::move(out));
  std::swap(out.sizes[size_t(a)], out.sizes[size_t(b)]);
  std::swap(out.strides[size_t(a)], out.strides[size_t(b)]);
  return one(std::move(out));
}

Index transpose_view(ElementContext&, const OpArgs& args, size_t, const Index& index) {
  if (index.empty()) return index;
  const auto rank = static_cast<int64_t>(index.size());
  const int64_t a = args.constant(1), b = args.constant(2);
  Index out = index;
  std::swap(out[size_t(a < 0 ? a + rank : a)], out[size_t(b < 0 ? b + rank : b)]);
  return out;
}

Result<Types> t_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  if (out.rank() > 2) return shapes.invalid("needs a tensor of at most 2 dimensions");
  if (out.rank() == 2) {
    std::swap(out.sizes[0], out.sizes[1]);
    std::swap(out.strides[0], out.strides[1]);
  }
  return one(std::move(out));
}

Index t_view(ElementContext&, const OpArgs&, size_t, const Index& index) { return {index.rbegin(), index.rend()}; }

// ---- expand

struct Dim {
  ExprId size, stride;
};

// A dimension of the result. A guard which keeps the size is preferred to a guard which specializes it to 1.
Result<Dim> expand_dim(ShapeContext& shapes, Dim old, ExprId target) {
  ExprPool& pool = shapes.pool();
  const ExprId zero = pool.constant(0), one_size = pool.constant(1);
  if (is_minus_one(shapes, target) || old.size == target || shapes.env().known_equal(old.size, target)) return old;
  if (is_one(shapes.env(), old.size)) return Dim{target, zero};
  if (shapes.env().hint(old.size) == shapes.env().hint(target)) {
    if (shapes.require_equal(old.size, target)) return old;
  } else {
    const std::optional<bool> repeats = shapes.decided(pool.eq(old.size, one_size));
    if (!repeats) return shapes.needs(pool.eq(old.size, one_size));
    if (*repeats) return Dim{target, zero};
  }
  return shapes.invalid("an existing size other than 1 cannot be expanded");
}

Result<Types> expand_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const std::vector<ExprId>& target = args.integers(1);
  ExprPool& pool = shapes.pool();
  if (target.size() < self.rank()) return shapes.invalid("fewer sizes than dimensions");
  const size_t added = target.size() - self.rank();
  TensorType out = with_shape(self, target, target);
  for (size_t i = target.size(); i-- > 0;) {
    if (i >= added) {
      CRESSET_TRY(const Dim dim, expand_dim(shapes, {self.sizes[i - added], self.strides[i - added]}, target[i]));
      out.sizes[i] = dim.size;
      out.strides[i] = dim.stride;
      continue;
    }
    if (is_minus_one(shapes, target[i])) return shapes.invalid("-1 is not allowed for a new leading dimension");
    const bool kept = self.rank() > 0 && pool.is_const(target[i], 1);
    out.strides[i] = kept ? pool.mul(out.sizes[i + 1], out.strides[i + 1]) : pool.constant(0);
  }
  return one(std::move(out));
}

Index expand_view(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const TensorType &self = args.tensor(0), &out_type = context.result_type(result);
  const size_t added = index.size() - self.rank();
  Index out(index.begin() + std::ptrdiff_t(added), index.end());
  for (size_t i = 0; i < out.size(); ++i)
    if (self.sizes[i] != out_type.sizes[added + i] && is_broadcast(context.env(), self.sizes[i], out[i]))
      out[i] = context.pool().constant(0);
  return out;
}

// ---- unsqueeze, squeeze

Result<Types> unsqueeze_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), out.rank() + 1));
  const auto at = static_cast<std::ptrdiff_t>(dim);
  ExprPool& pool = shapes.pool();
  const ExprId stride =
      size_t(dim) >= out.rank() ? pool.constant(1) : pool.mul(out.sizes[size_t(dim)], out.strides[size_t(dim)]);
  out.sizes.insert(out.sizes.begin() + at, pool.constant(1));
  out.strides.insert(out.strides.begin() + at, stride);
  return one(std::move(out));
}

Index unsqueeze_view(ElementContext&, const OpArgs& args, size_t, const Index& index) {
  const int64_t dim = args.constant(1);
  Index out = index;
  out.erase(out.begin() + std::ptrdiff_t(dim < 0 ? dim + int64_t(index.size()) : dim));
  return out;
}

// The dimensions named in the call; all if none is named.
Result<std::vector<bool>> named_dims(ShapeContext& shapes, const OpArgs& args) {
  const size_t rank = args.tensor(0).rank();
  if (args.count() < 2) return std::vector<bool>(rank, true);
  std::vector<ExprId> dims;
  if (const auto* list = std::get_if<std::vector<ExprId>>(&args[1]))
    dims = *list;
  else
    dims.push_back(args.integer(1));
  std::vector<bool> out(rank, false);
  for (const ExprId d : dims) {
    CRESSET_TRY(const int64_t dim, shapes.wrap_dim(d, rank));
    if (rank == 0) continue;
    if (out[size_t(dim)]) return shapes.invalid("a dimension is repeated");
    out[size_t(dim)] = true;
  }
  return out;
}

Result<Types> squeeze_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY(const std::vector<bool> named, named_dims(shapes, args));
  TensorType out = with_shape(self, {}, {});
  for (size_t i = 0; i < self.rank(); ++i) {
    const ExprId single = shapes.pool().eq(self.sizes[i], shapes.pool().constant(1));
    const std::optional<bool> goes = named[i] ? shapes.decided(single) : false;
    if (!goes) return shapes.needs(single);
    if (*goes) continue;
    out.sizes.push_back(self.sizes[i]);
    out.strides.push_back(self.strides[i]);
  }
  return one(std::move(out));
}

Index squeeze_view(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  // Squeezed dimensions are exactly the named dimensions known to be 1, so skipping them in row-major order is a
  // reshape.
  return reshape_index(context.env(), args.tensor(0).sizes, context.result_type(result).sizes, index);
}

bool is_identity_permutation(const OpArgs& args) {
  const std::vector<ExprId>& dims = args.integers(1);
  for (size_t d = 0; d < dims.size(); ++d)
    if (!args.graph().pool().is_const(dims[d], static_cast<int64_t>(d))) return false;
  return true;
}

constexpr OpDef kViewOps[] = {
    {.schema = "aten::alias(Tensor(a) self) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = alias_shape,
     .view = identity_view,
     .is_no_op = always,
     .traits = {.elements = Elements::Kept}},
    {.schema = "aten::detach(Tensor(a) self) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = alias_shape,
     .view = identity_view,
     .is_no_op = always,
     .traits = {.elements = Elements::Kept}},
    {.schema = "aten::lift_fresh(Tensor(a) self) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = alias_shape,
     .view = identity_view,
     .is_no_op = always,
     .traits = {.elements = Elements::Kept}},
    {.schema = "aten::lift(Tensor self) -> Tensor",
     .op_class = OpClass::View,
     .shape = alias_shape,
     .view = identity_view,
     .traits = {.elements = Elements::Kept}},
    {.schema = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = view_shape,
     .view = view_index,
     .is_no_op = always,
     .traits = {.elements = Elements::Reshaped}},
    {.schema = "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
     .op_class = OpClass::View,
     .shape = view_shape,
     .view = view_index,
     .is_no_op = always,
     .traits = {.elements = Elements::Reshaped}},
    {.schema = "aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = reshape_alias_shape,
     .view = view_index,
     .traits = {.elements = Elements::Reshaped}},
    {.schema = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = permute_shape,
     .view = permute_view,
     .is_no_op = is_identity_permutation},
    {.schema = "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = transpose_shape,
     .view = transpose_view},
    {.schema = "aten::t(Tensor(a) self) -> Tensor(a)", .op_class = OpClass::View, .shape = t_shape, .view = t_view},
    {.schema = "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = expand_shape,
     .view = expand_view,
     .is_no_op = always},
    {.schema = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = unsqueeze_shape,
     .view = unsqueeze_view,
     .traits = {.elements = Elements::Reshaped}},
    {.schema = "aten::squeeze(Tensor(a) self) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = squeeze_shape,
     .view = squeeze_view,
     .traits = {.elements = Elements::Reshaped}},
    {.schema = "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = squeeze_shape,
     .view = squeeze_view,
     .traits = {.elements = Elements::Reshaped}},
    {.schema = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = squeeze_shape,
     .view = squeeze_view,
     .traits = {.elements = Elements::Reshaped}},
};

}  // namespace

std::span<const OpDef> view_ops() { return kViewOps; }

}  // namespace cresset::ops
