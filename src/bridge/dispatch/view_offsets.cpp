#include "bridge/dispatch/view_offsets.h"

#include "bridge/capture/sym_node.h"
#include "bridge/symbolic/tensor_geometry.h"
#include "ops/view_slice.h"

namespace cresset::bridge {

using graph::Arg;

size_t ViewOffsets::dim(const TraceTensor& parent, const Arg& arg) const {
  const int64_t d = capture_.env().pool().const_value(capture_.env().simplify(std::get<sym::ExprId>(arg)));
  return static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(parent.type().rank()) : d);
}

bool ViewOffsets::negative(sym::ExprId e) const {
  sym::ExprPool& pool = capture_.env().pool();
  const std::optional<bool> answer =
      capture_.env().evaluate(pool.lt(e, pool.constant(0)), [] { return current_reason(); });
  if (!answer) abort_capture(BreakKind::DataDependentValue, "an index that only data can give");
  return *answer;
}

sym::ExprId ViewOffsets::wrapped_index(const TraceTensor& parent, size_t d, const Arg& arg) const {
  const sym::ExprId index = std::get<sym::ExprId>(arg);
  sym::ExprPool& pool = capture_.env().pool();
  if (!capture_.env().hint(index) && !capture_.env().known_true(pool.ge(index, pool.constant(0))))
    return ops::from_either_end(pool, index, parent.type().sizes[d]);
  return negative(index) ? capture_.env().pool().add(index, parent.type().sizes[d]) : index;
}

sym::ExprId ViewOffsets::slice_offset(const TraceTensor& parent, const std::vector<Arg>& args) const {
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

sym::ExprId ViewOffsets::diagonal_offset(const TraceTensor& parent, const std::vector<Arg>& args) const {
  sym::ExprPool& pool = capture_.env().pool();
  const sym::ExprId offset = std::get<sym::ExprId>(args[1]);
  const bool below = negative(offset);
  const size_t d = dim(parent, below ? args[2] : args[3]);
  const sym::ExprId distance = below ? pool.neg(offset) : offset;
  // ATen leaves the offset of a diagonal without elements as it is.
  const auto why = [] { return current_reason(); };
  if (!pool.is_const(distance, 0) &&
      capture_.env().evaluate(pool.le(parent.type().sizes[d], distance), why).value_or(false))
    return parent.offset();
  return pool.add(parent.offset(), pool.mul(distance, parent.type().strides[d]));
}

sym::ExprId ViewOffsets::of(const TraceTensor& parent, graph::OpId op, const std::vector<Arg>& args) const {
  sym::ExprPool& pool = capture_.env().pool();
  static const graph::OpId slice = graph::op_id("aten::slice.Tensor"), select = graph::op_id("aten::select.int"),
                           diagonal = graph::op_id("aten::diagonal");
  if (op == slice) return slice_offset(parent, args);
  if (op == select) {
    const size_t d = dim(parent, args[1]);
    return pool.add(parent.offset(), pool.mul(wrapped_index(parent, d, args[2]), parent.type().strides[d]));
  }
  static const graph::OpId as_strided = graph::op_id("aten::as_strided");
  if (op == as_strided) return std::get<sym::ExprId>(args[3]);
  if (op == diagonal) return diagonal_offset(parent, args);
  return parent.offset();
}

sym::ExprId ViewOffsets::rescaled(sym::ExprId offset, DType from, DType to) const {
  sym::ExprPool& pool = capture_.env().pool();
  if (byte_size(from) == byte_size(to)) return offset;
  return pool.floor_div(pool.mul(offset, pool.constant(byte_size(from))), pool.constant(byte_size(to)));
}

bool is_dense(sym::ShapeEnv& env, const TraceTensor& tensor) {
  return geometry::is_non_overlapping_and_dense(env, tensor.type().sizes, tensor.type().strides);
}

}  // namespace cresset::bridge
