// Writes through views: the resulting contents of their base.
#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"
#include "bridge/symbolic/tensor_geometry.h"
#include "ops/op_traits.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::OpId;

struct ViewOps {
  OpId unsafe_view = graph::op_id("aten::_unsafe_view"), permute = graph::op_id("aten::permute"),
       transpose = graph::op_id("aten::transpose.int"), t = graph::op_id("aten::t"),
       slice = graph::op_id("aten::slice.Tensor"), select = graph::op_id("aten::select.int"),
       expand = graph::op_id("aten::expand"), as_strided = graph::op_id("aten::as_strided"),
       diagonal = graph::op_id("aten::diagonal"), view_as_real = graph::op_id("aten::view_as_real"),
       view_as_complex = graph::op_id("aten::view_as_complex"), view_dtype = graph::op_id("aten::view.dtype"),
       unfold = graph::op_id("aten::unfold");
};
const ViewOps& view_ops() {
  static const ViewOps ops;
  return ops;
}

// The dims argument of the permutation which undoes a permute, transpose or t.
std::vector<int64_t> inverse_permutation(const sym::ExprPool& pool, const ViewChain& link) {
  const ViewOps& v = view_ops();
  const int64_t rank = static_cast<int64_t>(link.parent_type.rank());
  std::vector<int64_t> inverse(rank);
  for (int64_t d = 0; d < rank; ++d) inverse[d] = d;
  const auto dim = [&](const sym::ExprId e) {
    const int64_t d = pool.const_value(e);
    return d < 0 ? d + rank : d;
  };
  if (link.op == v.permute) {
    const auto& dims = std::get<std::vector<sym::ExprId>>(link.args[1]);
    for (int64_t d = 0; d < rank; ++d) inverse[dim(dims[d])] = d;
  } else if (rank > 0) {
    const bool is_t = link.op == v.t;
    const int64_t a = is_t ? 0 : dim(std::get<sym::ExprId>(link.args[1]));
    const int64_t b = is_t ? rank - 1 : dim(std::get<sym::ExprId>(link.args[2]));
    std::swap(inverse[a], inverse[b]);
  }
  return inverse;
}

}  // namespace

// The parent of a view with the same elements in the same order: `view` is the operator which leads back to it.
graph::ValueId StorageTable::scattered_whole(graph::ValueId value, const graph::TensorType& parent, OpId view,
                                             std::vector<Arg> args) {
  graph::TensorType type = parent;
  type.strides = graph::contiguous_strides(recorder_.env().pool(), type.sizes);
  // Elements of another dtype need row-major strides also where a size is 1.
  const graph::TensorType& lies = recorder_.graph().type(value);
  const bool in_rows = lies.dtype == parent.dtype
                           ? graph::is_contiguous(recorder_.env(), lies)
                           : lies.strides == graph::contiguous_strides(recorder_.env().pool(), lies.sizes);
  if (!in_rows) value = recorder_.call(graph::op_id("aten::clone"), {value, graph::MemoryFormat::Contiguous})[0];
  args.insert(args.begin(), Arg(value));
  return recorder_.append(view, std::move(args), {std::move(type)})[0];
}

// The parent's contents after a write of `value` to the view.
graph::ValueId StorageTable::scatter(const ViewChain& link, graph::ValueId parent, graph::ValueId value) {
  const ViewOps& v = view_ops();
  sym::ExprPool& pool = recorder_.env().pool();
  const ops::Elements elements = ops::traits(link.op).elements;
  if (elements == ops::Elements::Kept) return value;
  if (elements == ops::Elements::Reshaped)
    return scattered_whole(value, link.parent_type, v.unsafe_view, {link.parent_type.sizes});
  if (link.op == v.view_as_real) return scattered_whole(value, link.parent_type, v.view_as_complex, {});
  if (link.op == v.view_as_complex) return scattered_whole(value, link.parent_type, v.view_as_real, {});
  if (link.op == v.view_dtype) return scattered_whole(value, link.parent_type, v.view_dtype, {link.parent_type.dtype});
  if (link.op == v.permute || link.op == v.transpose || link.op == v.t) {
    std::vector<sym::ExprId> dims;
    for (const int64_t d : inverse_permutation(pool, link)) dims.push_back(pool.constant(d));
    return recorder_.call(v.permute, {value, dims})[0];
  }
  std::vector<Arg> args = link.args;
  args[0] = parent;
  args.insert(args.begin() + 1, Arg(value));
  if (link.op == v.slice)
    return recorder_.append(graph::op_id("aten::slice_scatter"), std::move(args), {link.parent_type})[0];
  if (link.op == v.select)
    return recorder_.append(graph::op_id("aten::select_scatter"), std::move(args), {link.parent_type})[0];
  if (link.op == v.as_strided) {
    const auto why = [] { return current_reason(); };
    if (!geometry::decide_non_overlapping(recorder_.env(), link.type.sizes, link.type.strides, why))
      abort_capture(BreakKind::AliasedWrite,
                    "a write through aten::as_strided to elements that may share their memory");
    // A strided view is made of a whole dense base: its offset counts from the base's first element, as in the base's
    // value.
    return recorder_.append(graph::op_id("aten::as_strided_scatter"), std::move(args), {link.parent_type})[0];
  }
  if (link.op == v.diagonal)
    return recorder_.append(graph::op_id("aten::diagonal_scatter"), std::move(args), {link.parent_type})[0];
  if (link.op == v.expand) {
    bool same = link.type.sizes.size() == link.parent_type.sizes.size();
    for (size_t d = 0; same && d < link.type.sizes.size(); ++d)
      same = recorder_.env().known_equal(link.type.sizes[d], link.parent_type.sizes[d]);
    if (same) return value;
  }
  abort_capture(BreakKind::AliasedWrite, c10::str("a write through ", std::string(graph::op_name(link.op))));
}

// Whether a view's strides and offset also locate its elements in the base's value: the base must be dense, and the
// view must read its elements unchanged.
bool StorageTable::lies_in_base(const TraceTensor& tensor) const {
  const graph::TensorType& base = recorder_.graph().type(storages_[tensor.storage_id().index].value);
  for (const ViewChain* link = tensor.chain().get(); link != nullptr; link = link->parent.get())
    if (link->parent_type.dtype != base.dtype) return false;
  return tensor.type().dtype == base.dtype &&
         geometry::is_non_overlapping_and_dense(recorder_.graph().env(), base.sizes, base.strides);
}

// The base's contents after a write of `value` to the view's memory.
graph::ValueId StorageTable::scattered(const TraceTensor& tensor, graph::ValueId value) {
  const Storage& storage = storages_[tensor.storage_id().index];
  const ViewOps& v = view_ops();
  bool by_numbers = false;
  for (const ViewChain* link = tensor.chain().get(); link != nullptr; link = link->parent.get())
    by_numbers = by_numbers || link->op == v.unfold;
  if (by_numbers && lies_in_base(tensor)) {
    ViewChain whole{nullptr, v.as_strided, {}, recorder_.graph().type(storage.value), tensor.type(), {}};
    whole.args = {storage.value, tensor.type().sizes, tensor.type().strides, tensor.offset()};
    return scatter(whole, storage.value, value);
  }
  for (const ViewChain* link = tensor.chain().get(); link != nullptr; link = link->parent.get())
    value = scatter(*link, parent_value(storage, *link), value);
  return value;
}

}  // namespace cresset::bridge
