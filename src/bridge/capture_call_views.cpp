#include <c10/core/InferenceMode.h>

#include "bridge/capture_call.h"
#include "bridge/capture_kernel.h"
#include "bridge/sym_node.h"
#include "bridge/tensor_geometry.h"
#include "ops/view_slice.h"

namespace cresset::bridge {
namespace {

thread_local int64_t lists_made = 0;

}  // namespace

int64_t lists_by_size() { return lists_made; }

using graph::Arg;
using graph::ValueId;

sym::ExprId CaptureCall::view_offset(const TraceTensor& parent, const std::vector<Arg>& args) {
  sym::ExprPool& pool = capture_.env().pool();
  static const graph::OpId slice = graph::op_id("aten::slice.Tensor"), select = graph::op_id("aten::select.int"),
                           diagonal = graph::op_id("aten::diagonal");
  const graph::OpId op = entry_.functional;
  if (op == slice) return slice_offset(parent, args);
  if (op == select) {
    const size_t d = dim(parent, args[1]);
    return pool.add(parent.offset(), pool.mul(wrapped_index(parent, d, args[2]), parent.type().strides[d]));
  }
  if (op == as_strided())
    return std::holds_alternative<graph::None>(args[3]) ? parent.offset() : std::get<sym::ExprId>(args[3]);
  if (op == diagonal) return diagonal_offset(parent, args);
  return parent.offset();
}

sym::ExprId CaptureCall::rescaled(sym::ExprId offset, DType from, DType to) {
  sym::ExprPool& pool = capture_.env().pool();
  if (byte_size(from) == byte_size(to)) return offset;
  return pool.floor_div(pool.mul(offset, pool.constant(byte_size(from))), pool.constant(byte_size(to)));
}

graph::OpId CaptureCall::view_op() const {
  static const graph::OpId conj = graph::op_id("aten::_conj"), neg = graph::op_id("aten::_neg_view"),
                           conj_physical = graph::op_id("aten::conj_physical"), negated = graph::op_id("aten::neg");
  if (entry_.functional == conj) return conj_physical;
  return entry_.functional == neg ? negated : entry_.functional;
}

size_t CaptureCall::dim(const TraceTensor& parent, const Arg& arg) const {
  const int64_t d = capture_.env().pool().const_value(capture_.env().simplify(std::get<sym::ExprId>(arg)));
  return static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(parent.type().rank()) : d);
}

size_t CaptureCall::checked_dim(const TraceTensor& parent, const Arg& arg) {
  const size_t d = dim(parent, arg);
  if (d < parent.type().rank()) return d;
  generic_check();
  abort_capture(entry_.name + " along a dimension that is not there");
}

bool CaptureCall::negative(sym::ExprId e) {
  sym::ExprPool& pool = capture_.env().pool();
  const std::optional<bool> answer =
      capture_.env().evaluate(pool.lt(e, pool.constant(0)), [] { return current_reason(); });
  if (!answer) abort_capture("an index that only data can give");
  return *answer;
}

sym::ExprId CaptureCall::wrapped_index(const TraceTensor& parent, size_t d, const Arg& arg) {
  const sym::ExprId index = std::get<sym::ExprId>(arg);
  sym::ExprPool& pool = capture_.env().pool();
  if (!capture_.env().hint(index) && !capture_.env().known_true(pool.ge(index, pool.constant(0))))
    return ops::from_either_end(pool, index, parent.type().sizes[d]);
  return negative(index) ? capture_.env().pool().add(index, parent.type().sizes[d]) : index;
}

sym::ExprId CaptureCall::slice_offset(const TraceTensor& parent, const std::vector<Arg>& args) {
  sym::ExprPool& pool = capture_.env().pool();
  if (std::holds_alternative<graph::None>(args[2])) return parent.offset();
  const size_t d = dim(parent, args[1]);
  const sym::ExprId given = std::get<sym::ExprId>(args[2]);
  const bool by_data = !capture_.env().hint(given) && !capture_.env().known_true(pool.ge(given, pool.constant(0)));
  sym::ExprId start =
      by_data ? ops::from_either_end(pool, given, parent.type().sizes[d]) : wrapped_index(parent, d, args[2]);
  start = pool.min(pool.max(start, pool.constant(0)), parent.type().sizes[d]);
  return pool.add(parent.offset(), pool.mul(capture_.env().simplify(start), parent.type().strides[d]));
}

sym::ExprId CaptureCall::diagonal_offset(const TraceTensor& parent, const std::vector<Arg>& args) {
  sym::ExprPool& pool = capture_.env().pool();
  const sym::ExprId offset = std::get<sym::ExprId>(args[1]);
  if (!negative(offset))
    return pool.add(parent.offset(), pool.mul(offset, parent.type().strides[dim(parent, args[3])]));
  return pool.sub(parent.offset(), pool.mul(offset, parent.type().strides[dim(parent, args[2])]));
}

// Eager refuses to view memory as larger elements where it does not begin at one of them. Where an argument lies in its
// storage is no part of the program.
static void require_whole_elements(Capture& capture, const std::string& op, const TraceTensor& parent,
                                   sym::ExprId offset, DType as) {
  const int64_t factor = byte_size(as) / byte_size(parent.type().dtype);
  if (factor < 2) return;
  if (capture.is_callers(parent) && !capture.starts_storage(parent))
    abort_capture(op + " at an offset in an argument's storage");
  sym::ExprPool& pool = capture.env().pool();
  const sym::ExprId is_whole = pool.eq(pool.mod(offset, pool.constant(factor)), pool.constant(0));
  if (!capture.env().evaluate(is_whole, [] { return current_reason(); }).value_or(false))
    abort_capture(op + " at an offset that is no multiple of its elements' size");
}

namespace {

// In inference mode, views of ordinary tensors are ordinary, and share their versions; outside of it, views of tensors
// that were made in it are such, too.
struct AsViewed {
  explicit AsViewed(const at::Tensor& viewed) {
    if (c10::InferenceMode::is_enabled() != viewed.is_inference()) mode.emplace(viewed.is_inference());
  }
  std::optional<c10::InferenceMode> mode;
};

}  // namespace

at::Tensor CaptureCall::one_view(TraceTensor& parent, graph::OpId op, std::vector<Arg> args,
                                 std::optional<std::vector<Extent>> within) {
  const std::vector<ValueId> results = capture_.call(op, args);
  const OpEntry* outer = std::exchange(current_op_, &entry_);
  const sym::ExprId offset = op == entry_.functional ? view_offset(parent, args) : parent.offset();
  current_op_ = outer;
  const DType dtype = capture_.graph().type(results[0]).dtype;
  require_whole_elements(capture_, entry_.name, parent, offset, dtype);
  const AsViewed mode(argument(0).toTensor());
  return capture_.make_view(parent, op, std::move(args), results[0], rescaled(offset, parent.type().dtype, dtype),
                            std::move(within));
}

std::optional<std::vector<Extent>> CaptureCall::extents(const TraceTensor& view) {
  if (view.chain() == nullptr) return std::nullopt;
  std::vector<Extent> out = view.chain()->within;
  out.push_back({view.type().sizes, view.type().strides, view.offset()});
  return out;
}

at::Tensor CaptureCall::memory_behind(const at::Tensor& view, std::vector<Arg>& args) {
  TraceTensor& trace = *TraceTensor::from(view);
  // What lies around an argument is no part of the program.
  if (capture_.is_callers(trace)) check_inside(trace, args);
  if (trace.chain() == nullptr) return view;
  if (std::holds_alternative<graph::None>(args[3])) args[3] = trace.offset();
  at::Tensor base = capture_.base_of(trace);
  args[0] = capture_.value_of(*TraceTensor::from(base));
  return base;
}

void CaptureCall::check_inside(const TraceTensor& trace, const std::vector<Arg>& args) {
  sym::ExprPool& pool = capture_.env().pool();
  const at::Tensor base = capture_.base_of(trace);
  sym::ExprId last = trace.offset(), empty = pool.constant(0);
  if (const auto* offset = std::get_if<sym::ExprId>(&args[3])) {
    if (!capture_.starts_storage(trace)) abort_capture("as_strided at an offset in an argument's storage");
    last = *offset;
  }
  if (!base.unsafeGetTensorImpl()->is_non_overlapping_and_dense()) abort_capture("as_strided on an argument with gaps");
  const auto &sizes = std::get<std::vector<sym::ExprId>>(args[1]),
             &strides = std::get<std::vector<sym::ExprId>>(args[2]);
  for (size_t d = 0; d < std::min(sizes.size(), strides.size()); ++d) {
    last = pool.add(last, pool.mul(pool.sub(sizes[d], pool.constant(1)), strides[d]));
    empty = pool.logical_or(empty, pool.eq(sizes[d], pool.constant(0)));
  }
  const sym::ExprId count = graph::numel(pool, TraceTensor::from(base)->type().sizes);
  const std::optional<bool> inside =
      capture_.env().evaluate(pool.logical_or(empty, pool.lt(last, count)), [] { return current_reason(); });
  if (!inside.value_or(false)) abort_capture("as_strided beyond an argument");
}

at::Tensor CaptureCall::strided(const at::Tensor& of, std::vector<Arg> args) {
  std::optional<std::vector<Extent>> within = extents(*TraceTensor::from(of));
  const at::Tensor base = memory_behind(of, args);
  TraceTensor& trace = *TraceTensor::from(base);
  // Elements between those of a value are nowhere in the program.
  if (const graph::TensorType& type = trace.type();
      !geometry::is_non_overlapping_and_dense(capture_.env(), type.sizes, type.strides)) {
    if (!is_all_of(trace, args)) abort_capture("as_strided of memory with gaps");
    return one_view(trace, graph::op_id("aten::alias"), {args[0]}, std::move(within));
  }
  return one_view(trace, entry_.functional, std::move(args), std::move(within));
}

bool CaptureCall::is_all_of(const TraceTensor& base, const std::vector<Arg>& args) {
  const auto same = [&](sym::ExprId a, sym::ExprId b) {
    return capture_.env().evaluate(capture_.env().pool().eq(a, b), [] { return current_reason(); }).value_or(false);
  };
  const auto all_same = [&](const std::vector<sym::ExprId>& a, const std::vector<sym::ExprId>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  };
  const auto* offset = std::get_if<sym::ExprId>(&args[3]);
  return (offset == nullptr || same(*offset, base.offset())) &&
         all_same(std::get<std::vector<sym::ExprId>>(args[1]), base.type().sizes) &&
         all_same(std::get<std::vector<sym::ExprId>>(args[2]), base.type().strides);
}

void CaptureCall::view() {
  at::Tensor base = stand_in(0);
  std::vector<Arg> args = arguments(count_);
  if (entry_.functional == as_strided()) return finish_with(strided(base, std::move(args)));
  TraceTensor& parent = *TraceTensor::from(base);
  if (entry_.return_types[0] == ArgType::TensorList) return views(parent, args);
  if (entry_.return_types.size() != 1) abort_capture(entry_.name + " returns several views");
  finish_with(one_view(parent, view_op(), std::move(args)));
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
    lists_made += capture_.env().pool().is_const(capture_.env().simplify(parent.type().sizes[d])) ? 0 : 1;
    const int64_t n = pin(parent.type().sizes[d]);
    for (int64_t i = 0; i < n; ++i) out.push_back(select(parent, args[0], d, pool.constant(i)));
  } else if (entry_.functional == split || entry_.functional == split_sizes || entry_.functional == unsafe ||
             entry_.functional == unsafe_sizes) {
    const size_t d = checked_dim(parent, args[2]);
    sym::ExprId start = pool.constant(0);
    for (const sym::ExprId size : pieces(parent, args, d)) {
      const sym::ExprId end = pool.add(start, size);
      out.push_back(slice(parent, args[0], d, start, end));
      start = end;
    }
  } else {
    abort_capture(entry_.name + " returns several views");
  }
  finish({out});
}

int64_t CaptureCall::pin(sym::ExprId e) {
  const std::optional<int64_t> value = capture_.env().specialize(e, current_reason());
  if (!value) abort_capture("a number of results that only data can give");
  return *value;
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
  if (!empty) abort_capture("a number of results that only data can give");
  if (*empty) {
    if (!decide_equal(total, piece)) (void)generic_check();
    return {total};
  }
  const int64_t count = std::max<int64_t>(1, pin(capture_.env().simplify(pool.ceil_div(total, piece))));
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
  capture_.call(entry_.functional, arguments(count_));
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
  if (target == nullptr || Guest::stand_in_of(self.unsafeGetTensorImpl()) != nullptr)
    abort_capture(entry_.name + " on a tensor from outside changes its shape for good");
  at::Tensor result = entry_.functional == as_strided() ? strided(self, arguments(count_))
                                                        : one_view(*target, entry_.functional, arguments(count_));
  target->become(*TraceTensor::from(result));
  finish_with(std::move(self));
}

}  // namespace cresset::bridge
