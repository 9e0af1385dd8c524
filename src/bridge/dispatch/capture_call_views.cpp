#include <ATen/ops/slice.h>
#include <c10/core/InferenceMode.h>

#include "bridge/capture/sym_node.h"
#include "bridge/dispatch/capture_call.h"
#include "bridge/dispatch/view_offsets.h"
#include "bridge/symbolic/tensor_geometry.h"
#include "ops/op_def.h"

namespace cresset::bridge {

using graph::Arg;
using graph::ValueId;

// The extents of a view by as_strided of `view` (ViewChain).
static std::optional<std::vector<Extent>> extents(const TraceTensor& view) {
  if (view.chain() == nullptr) return std::nullopt;
  std::vector<Extent> out = view.chain()->within;  // of elements of its dtype
  out.push_back({view.type().sizes, view.type().strides, view.offset()});
  return out;
}

static int64_t specialize(sym::ShapeEnv& env, sym::ExprId e) {
  const std::optional<int64_t> value = env.specialize(e, current_reason());
  if (!value) abort_capture(BreakKind::DataDependentSize, "a number of results that only data can give");
  return *value;
}

graph::OpId CaptureCall::view_op() const { return changes_bits() ? graph::op_id("aten::alias") : entry_.functional; }

bool CaptureCall::changes_bits() const {
  static const graph::OpId conj = graph::op_id("aten::_conj"), neg = graph::op_id("aten::_neg_view");
  return entry_.functional == conj || entry_.functional == neg;
}

void CaptureCall::change_bits(TraceTensor& view) const {
  static const graph::OpId conj = graph::op_id("aten::_conj");
  const bool conjugates = entry_.functional == conj;
  if (conjugates && category(view.type().dtype) != DTypeCategory::Complex)
    abort_capture(BreakKind::UnsupportedDtype, entry_.name + " of real numbers");
  view.mark(view.is_conj() != conjugates, view.is_neg() == conjugates);
}

size_t CaptureCall::checked_dim(const TraceTensor& parent, const Arg& arg) {
  const size_t d = ViewOffsets(capture_).dim(parent, arg);
  if (d < parent.type().rank()) return d;
  generic_check();
  abort_capture(BreakKind::InvalidArguments, entry_.name + " along a dimension that is not there");
}

// Eager mode refuses to split lazily conjugated or negated numbers into their parts.
static void require_plain_elements(const std::string& op, const TraceTensor& parent, DType as) {
  const auto is_complex = [](DType dtype) { return category(dtype) == DTypeCategory::Complex; };
  const bool in_parts = is_complex(as) != is_complex(parent.type().dtype) && op != "aten::view.dtype";
  if (as != parent.type().dtype && (parent.is_conj() || (parent.is_neg() && !in_parts)))
    abort_capture(BreakKind::UnsupportedLayout, op + " of a conjugated or negated view");
}

// Eager mode refuses to view memory as larger elements at an unaligned offset. An argument's offset in its storage is
// not part of the program.
static void require_whole_elements(Capture& capture, const std::string& op, const TraceTensor& parent,
                                   sym::ExprId offset, DType as) {
  const int64_t factor = byte_size(as) / byte_size(parent.type().dtype);
  if (factor < 2) return;
  if (capture.storages().is_callers(parent) && !capture.storages().starts_storage(parent))
    abort_capture(BreakKind::UnsupportedLayout, op + " at an offset in an argument's storage");
  sym::ExprPool& pool = capture.env().pool();
  const sym::ExprId is_whole = pool.eq(pool.mod(offset, pool.constant(factor)), pool.constant(0));
  if (!capture.env().evaluate(is_whole, [] { return current_reason(); }).value_or(false))
    abort_capture(BreakKind::InvalidArguments, op + " at an offset that is no multiple of its elements' size");
}

namespace {

// In inference mode, a view of an ordinary tensor is ordinary and shares its versions. Outside of it, a view of an
// inference tensor is an inference tensor.
struct AsViewed {
  explicit AsViewed(const at::Tensor& viewed) {
    if (c10::InferenceMode::is_enabled() != viewed.is_inference()) mode.emplace(viewed.is_inference());
  }
  std::optional<c10::InferenceMode> mode;
};

}  // namespace

at::Tensor CaptureCall::one_view(TraceTensor& parent, graph::OpId op, std::vector<Arg> args,
                                 std::optional<std::vector<Extent>> within) {
  const std::vector<ValueId> results = capture_.recorder().call(op, args);
  const OpEntry* outer = std::exchange(current_op_, &entry_);
  const sym::ExprId offset = ViewOffsets(capture_).of(parent, op, args);
  current_op_ = outer;
  const DType dtype = capture_.graph().type(results[0]).dtype;
  require_plain_elements(entry_.name, parent, dtype);
  require_whole_elements(capture_, entry_.name, parent, offset, dtype);
  static const graph::OpId view_dtype = graph::op_id("aten::view.dtype");
  std::optional<AsViewed> mode;  // view(dtype) makes a tensor of the present mode
  if (entry_.functional != view_dtype) mode.emplace(argument(0).toTensor());
  at::Tensor out =
      capture_.make_view(parent, op, std::move(args), results[0],
                         ViewOffsets(capture_).rescaled(offset, parent.type().dtype, dtype), std::move(within));
  if (changes_bits()) change_bits(*TraceTensor::from(out));
  return out;
}

at::Tensor CaptureCall::memory_as(const at::Tensor& base, DType dtype) {
  TraceTensor& trace = *TraceTensor::from(base);
  const DType own = trace.type().dtype;
  if (own == dtype) return base;
  if (!is_dense(capture_.env(), trace))
    abort_capture(BreakKind::UnsupportedLayout, entry_.name + " of memory with gaps");
  sym::ExprPool& pool = capture_.env().pool();
  const int64_t factor = std::max<int64_t>(1, byte_size(dtype) / byte_size(own));
  const sym::ExprId count = graph::numel(pool, trace.type().sizes), whole = pool.constant(factor);
  const std::vector<sym::ExprId> sizes{capture_.env().simplify(pool.mul(pool.floor_div(count, whole), whole))},
      strides{pool.constant(1)};
  const at::Tensor row = one_view(trace, as_strided(), {trace.value, sizes, strides, pool.constant(0)});
  TraceTensor& elements = *TraceTensor::from(row);
  return one_view(elements, graph::op_id("aten::view.dtype"), {elements.value, dtype});
}

void CaptureCall::check_inside(const TraceTensor& memory, const std::vector<Arg>& args) {
  sym::ExprPool& pool = capture_.env().pool();
  sym::ExprId last = std::get<sym::ExprId>(args[3]), empty = pool.constant(0);
  const auto &sizes = std::get<std::vector<sym::ExprId>>(args[1]),
             &strides = std::get<std::vector<sym::ExprId>>(args[2]);
  for (size_t d = 0; d < std::min(sizes.size(), strides.size()); ++d) {
    last = pool.add(last, pool.mul(pool.sub(sizes[d], pool.constant(1)), strides[d]));
    empty = pool.logical_or(empty, pool.eq(sizes[d], pool.constant(0)));
  }
  const sym::ExprId count = graph::numel(pool, memory.type().sizes);
  const std::optional<bool> inside =
      capture_.env().evaluate(pool.logical_or(empty, pool.lt(last, count)), [] { return current_reason(); });
  if (!inside.value_or(!capture_.storages().is_callers(memory)))
    abort_capture(BreakKind::UnsupportedLayout, entry_.name + " beyond the memory of a tensor");
}

at::Tensor CaptureCall::strided(const at::Tensor& of, std::vector<Arg> args) {
  const TraceTensor& trace = *TraceTensor::from(of);
  if (std::holds_alternative<graph::None>(args[3])) {
    capture_.storages().hold_offset(trace);
    args[3] = trace.offset();
  } else if (capture_.storages().is_callers(trace) && !capture_.storages().starts_storage(trace)) {
    abort_capture(BreakKind::UnsupportedLayout, entry_.name + " at an offset in an argument's storage");
  }
  const at::Tensor base = capture_.base_of(trace);
  std::optional<std::vector<Extent>> within = extents(trace);
  const at::Tensor memory = memory_as(base, trace.type().dtype);
  TraceTensor& whole = *TraceTensor::from(memory);
  args[0] = whole.value;
  // The program has no memory between the elements of a value.
  const bool dense = is_dense(capture_.env(), whole);
  if (!dense && !is_all_of(whole, args))
    abort_capture(BreakKind::UnsupportedLayout, entry_.name + " of memory with gaps");
  if (dense) check_inside(whole, args);
  at::Tensor out = dense ? one_view(whole, as_strided(), std::move(args), std::move(within))
                         : one_view(whole, graph::op_id("aten::alias"), {whole.value}, std::move(within));
  TraceTensor::from(out)->mark(trace.is_conj(), trace.is_neg());
  return out;
}

bool CaptureCall::is_all_of(const TraceTensor& base, const std::vector<Arg>& args) {
  const auto same = [&](sym::ExprId a, sym::ExprId b) {
    return capture_.env().evaluate(capture_.env().pool().eq(a, b), [] { return current_reason(); }).value_or(false);
  };
  const auto all_same = [&](const std::vector<sym::ExprId>& a, const std::vector<sym::ExprId>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  };
  return same(std::get<sym::ExprId>(args[3]), base.offset()) &&
         all_same(std::get<std::vector<sym::ExprId>>(args[1]), base.type().sizes) &&
         all_same(std::get<std::vector<sym::ExprId>>(args[2]), base.type().strides);
}

bool CaptureCall::is_known_view() const {
  return ops::find(entry_.functional) != nullptr || ops::traits(entry_.functional).elements != ops::Elements::Computed;
}

// A view of the same dtype is an alias: it needs no call of ATen, whose result must be in memory.
static bool is_same_dtype(graph::OpId op, const TraceTensor& parent, const std::vector<Arg>& args) {
  static const graph::OpId view_dtype = graph::op_id("aten::view.dtype");
  return op == view_dtype && std::get<DType>(args[1]) == parent.type().dtype;
}

void CaptureCall::view() {
  if (!is_known_view())
    abort_capture(BreakKind::UnsupportedOperator, entry_.name + ", of which nothing says where its elements are");
  at::Tensor base = proxy(0);
  TraceTensor& parent = *TraceTensor::from(base);
  std::vector<Arg> args = arguments_of_view(parent);
  if (entry_.functional == as_strided()) return finish_with(strided(base, std::move(args)));
  if (entry_.return_types[0] == ArgType::TensorList) return views(parent, args);
  if (entry_.return_types.size() != 1)
    abort_capture(BreakKind::UnsupportedOperator, entry_.name + " returns several views");
  if (is_same_dtype(entry_.functional, parent, args))
    return finish_with(one_view(parent, graph::op_id("aten::alias"), {args[0]}));
  finish_with(one_view(parent, view_op(), std::move(args)));
}

// ATen's unsafe splits slice, and give each part a counter of its own. In inference mode no kernel of autograd comes
// before them. The slices of an ordinary tensor are then views for autograd, and later views of them share the counter
// of the base.
static at::Tensor unsafe_slice(Capture& capture, const at::Tensor& of, size_t d, sym::ExprId start, sym::ExprId end) {
  const auto number = [&](sym::ExprId e) { return SymNode::make_int(capture.env_ptr(), capture.env().simplify(e)); };
  at::Tensor out = at::slice_symint(of, static_cast<int64_t>(d), number(start), number(end), 1);
  out.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(0));
  return out;
}

void CaptureCall::views(TraceTensor& parent, const std::vector<Arg>& args) {
  static const graph::OpId unbind = graph::op_id("aten::unbind.int"), split = graph::op_id("aten::split.Tensor"),
                           split_sizes = graph::op_id("aten::split_with_sizes"),
                           unsafe = graph::op_id("aten::unsafe_split.Tensor"),
                           unsafe_sizes = graph::op_id("aten::unsafe_split_with_sizes");
  sym::ExprPool& pool = capture_.env().pool();
  c10::List<at::Tensor> out;
  if (entry_.functional == unbind) {
    const size_t d = checked_dim(parent, args[1]);
    const int64_t n = specialize(capture_.env(), parent.type().sizes[d]);
    for (int64_t i = 0; i < n; ++i) out.push_back(select(parent, args[0], d, pool.constant(i)));
  } else if (entry_.functional == split || entry_.functional == split_sizes || entry_.functional == unsafe ||
             entry_.functional == unsafe_sizes) {
    const size_t d = checked_dim(parent, args[2]);
    const bool as_slices = entry_.functional != split && entry_.functional != split_sizes &&
                           c10::InferenceMode::is_enabled() && !argument(0).toTensor().is_inference();
    sym::ExprId start = pool.constant(0);
    for (const sym::ExprId size : pieces(parent, args, d)) {
      const sym::ExprId end = pool.add(start, size);
      out.push_back(as_slices ? unsafe_slice(capture_, argument(0).toTensor(), d, start, end)
                              : slice(parent, args[0], d, start, end));
      start = end;
    }
  } else {
    abort_capture(BreakKind::UnsupportedOperator, entry_.name + " returns several views");
  }
  finish({out});
}

std::vector<sym::ExprId> CaptureCall::pieces(const TraceTensor& parent, const std::vector<Arg>& args, size_t d) {
  if (const auto* sizes = std::get_if<std::vector<sym::ExprId>>(&args[1])) {
    check_split(parent, args, *sizes, d);
    return *sizes;
  }
  sym::ExprPool& pool = capture_.env().pool();
  const sym::ExprId total = parent.type().sizes[d], piece = std::get<sym::ExprId>(args[1]);
  const sym::ExprId none = pool.eq(piece, pool.constant(0));
  const std::optional<bool> empty = capture_.env().evaluate(none, [] { return current_reason(); });
  if (!empty) abort_capture(BreakKind::DataDependentSize, "a number of results that only data can give");
  if (*empty) {
    if (!decide_equal(total, piece)) (void)generic_check();
    return {total};
  }
  const int64_t count =
      std::max<int64_t>(1, specialize(capture_.env(), capture_.env().simplify(pool.ceil_div(total, piece))));
  std::vector<sym::ExprId> out(static_cast<size_t>(count - 1), piece);
  out.push_back(pool.sub(total, pool.mul(piece, pool.constant(count - 1))));
  return out;
}

void CaptureCall::check_split(const TraceTensor& parent, const std::vector<Arg>& args,
                              const std::vector<sym::ExprId>& sizes, size_t d) {
  const sym::ExprId total = parent.type().sizes[d];
  sym::ExprPool& pool = capture_.env().pool();
  const sym::ExprId sum = sizes.empty() ? pool.constant(0) : pool.sum(sizes);
  const std::optional<bool> fits = capture_.env().evaluate(pool.eq(sum, total), [] { return current_reason(); });
  if (fits == false) (void)generic_check();
  if (!fits) assume_split(parent, args, sizes, d);
}

void CaptureCall::assume_split(const TraceTensor& parent, const std::vector<Arg>& args,
                               const std::vector<sym::ExprId>& sizes, size_t d) {
  sym::ExprPool& pool = capture_.env().pool();
  std::vector<graph::TensorType> types(sizes.size(), parent.type());
  for (size_t i = 0; i < sizes.size(); ++i) {
    types[i].sizes[d] = sizes[i];
    capture_.env().assume(pool.ge(sizes[i], pool.constant(0)), "a size of a split, which data gives, is negative");
  }
  capture_.env().assume(pool.eq(pool.sum(sizes), parent.type().sizes[d]),
                        "the sizes of a split, which data gives, do not add up");
  capture_.graph().add_node(entry_.functional, args, std::move(types));
}

bool CaptureCall::generic_check() {
  capture_.recorder().call(entry_.functional, arguments(count_));
  return true;
}

at::Tensor CaptureCall::slice(TraceTensor& parent, const Arg& self, size_t d, sym::ExprId start, sym::ExprId end) {
  sym::ExprPool& pool = capture_.env().pool();
  std::vector<Arg> args{self, pool.constant(static_cast<int64_t>(d)), start, end, pool.constant(1)};
  graph::TensorType type = parent.type();
  type.sizes[d] = pool.sub(end, start);
  return derived(parent, "aten::slice.Tensor", std::move(args), std::move(type), d, start);
}

at::Tensor CaptureCall::select(TraceTensor& parent, const Arg& self, size_t d, sym::ExprId index) {
  sym::ExprPool& pool = capture_.env().pool();
  std::vector<Arg> args{self, pool.constant(static_cast<int64_t>(d)), index};
  graph::TensorType type = parent.type();
  type.sizes.erase(type.sizes.begin() + static_cast<long>(d));
  type.strides.erase(type.strides.begin() + static_cast<long>(d));
  return derived(parent, "aten::select.int", std::move(args), std::move(type), d, index);
}

at::Tensor CaptureCall::derived(TraceTensor& parent, const char* op, std::vector<Arg> args, graph::TensorType type,
                                size_t d, sym::ExprId start) {
  sym::ExprPool& pool = capture_.env().pool();
  const graph::NodeId node = capture_.graph().add_node(graph::op_id(op), args, {std::move(type)});
  const sym::ExprId offset = pool.add(parent.offset(), pool.mul(start, parent.type().strides[d]));
  const AsViewed mode(argument(0).toTensor());
  return capture_.make_view(parent, graph::op_id(op), std::move(args), capture_.graph().node(node).results[0], offset);
}

void CaptureCall::in_place_view() {
  at::Tensor self = argument(0).toTensor();
  TraceTensor* target = TraceTensor::from(self);
  if (target == nullptr || InputProxy::proxy_of(self.unsafeGetTensorImpl()) != nullptr)
    abort_capture(BreakKind::SideEffect, entry_.name + " on a tensor from outside changes its shape for good");
  capture_.storages().guard_copies_of(target->storage_id().index);  // counts as a write
  std::vector<Arg> args = arguments_of_view(*target);
  at::Tensor result = entry_.functional == as_strided() ? strided(self, std::move(args))
                                                        : one_view(*target, entry_.functional, std::move(args));
  target->become(*TraceTensor::from(result));
  finish_with(std::move(self));
}

}  // namespace cresset::bridge
