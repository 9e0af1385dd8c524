#include "ops/strides.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "sym/general_sizes.h"

namespace cresset::ops {
namespace {

using graph::MemoryFormat;
using graph::TensorType;
using sym::ExprId;

// ---- comparing strides
//
// The strides of a dense tensor, in any order, are products of sizes, each a multiple of the next smaller stride. Their
// order is therefore the same for all sizes above 1. Where a size is 1 two strides may be equal. Then only the stride
// of a dimension of size 1 depends on the comparison, and this stride addresses nothing. The order is therefore
// computed at sample points with all sizes above 1. A guard is recorded only when samples or hints disagree (free
// strides, overlapping windows), because then the order really depends on the values.

enum class Order : uint8_t { Less, Equal, Greater };

Order order_of(double a, double b) { return a < b ? Order::Less : a > b ? Order::Greater : Order::Equal; }

// Evaluates expressions at a sample point. A point with a size below 2 is not a sample of general sizes. Sums and
// quotients hide sizes (h * w - h - w + 1 contains h - 1). If there are any, variables are scaled up.
class Sample {
 public:
  Sample(const sym::ShapeEnv& env, uint64_t number) : env_(env), number_(number) {}

  Order order(ExprId a, ExprId b) {
    constexpr double kScales[] = {1, 16, 256, 4096};
    Order found = Order::Equal;
    for (const double scale : kScales) {
      scale_ = scale;
      degenerate_ = false;
      found = order_of(value(a), value(b));
      if (!degenerate_ && found != Order::Equal && (scale_ >= 256 || !hidden_)) break;
    }
    return found;
  }

 private:
  double variable(sym::VarId var) const {
    uint64_t mixed = (var.index + 1) * 0x9E3779B97F4A7C15ull + number_ * 0xD1B54A32D192ED03ull;
    mixed ^= mixed >> 29;
    const uint64_t magnitude = number_ == 0 ? 13 : number_ == 1 ? 9001 : 97;
    const double value = static_cast<double>(2 + mixed % magnitude + (number_ == 1 ? 4000 : 0)) * scale_;
    const sym::Symbol* symbol = env_.symbol(var);
    if (symbol == nullptr) return value;
    return std::max(static_cast<double>(symbol->range.lo), std::min(value, static_cast<double>(symbol->range.hi)));
  }

  double value(ExprId id) {
    const sym::Expr& e = env_.pool()[id];
    if (e.kind == sym::Kind::Const) return static_cast<double>(e.value);
    if (e.kind == sym::Kind::Var) return variable(env_.pool().var_of(id));
    const double out = fold(e.kind, env_.pool().operands(id));
    if (e.kind != sym::Kind::Mul) {
      hidden_ = true;
      degenerate_ = degenerate_ || out < 2;
    }
    return out;
  }

  double fold(sym::Kind kind, std::span<const ExprId> operands) {
    double out = value(operands[0]);
    for (const ExprId operand : operands.subspan(1)) {
      const double b = value(operand);
      switch (kind) {
        case sym::Kind::Add:
          out += b;
          break;
        case sym::Kind::Mul:
          out *= b;
          break;
        case sym::Kind::FloorDiv:
          out = b == 0 ? 0 : std::floor(out / b);
          break;
        case sym::Kind::Mod:
          out = b == 0 ? 0 : out - b * std::floor(out / b);
          break;
        case sym::Kind::Min:
          out = std::min(out, b);
          break;
        case sym::Kind::Max:
          out = std::max(out, b);
          break;
        default:
          return 0;  // a relation is not a stride
      }
    }
    return out;
  }

  const sym::ShapeEnv& env_;
  uint64_t number_;
  double scale_ = 1;
  bool degenerate_ = false, hidden_ = false;
};

// Whether the strides are equal only for sizes of 1. Free strides may equal any other stride.
bool holds_in_general(sym::ShapeEnv& env, ExprId a, ExprId b, Order order) {
  const ExprId less = order == Order::Less ? a : b, greater = order == Order::Less ? b : a;
  if (order != Order::Equal && env.known_true(env.pool().le(less, greater))) return true;
  const ExprId claim = order == Order::Equal ? env.pool().eq(a, b) : env.pool().lt(less, greater);
  return sym::known_for_general_sizes(env, claim).value_or(false);
}

// Whether dimensions of `type` lead from one stride to the other: `inner` times the size of a dimension with this
// stride, and so on. Then `inner` is never greater than `outer`.
bool leads_to(sym::ShapeEnv& env, const TensorType& type, ExprId inner, ExprId outer) {
  std::vector<bool> used(type.rank());
  for (size_t step = 0; step < type.rank() && inner != outer; ++step) {
    size_t dim = 0;
    while (dim < type.rank() && (used[dim] || type.strides[dim] != inner)) ++dim;
    if (dim == type.rank()) return false;
    used[dim] = true;
    inner = env.pool().mul(inner, type.sizes[dim]);
  }
  return inner == outer;
}

// `type`: the tensor of both strides, if known.
Order compare(ShapeContext& shapes, ExprId a, ExprId b, const TensorType* type = nullptr) {
  sym::ShapeEnv& env = shapes.env();
  if (a == b || env.simplify(a) == env.simplify(b)) return Order::Equal;  // samples ignore guards
  const Order first = Sample(env, 0).order(a, b);
  if (env.pool().is_const(a) && env.pool().is_const(b)) return first;
  bool agree = true;
  for (uint64_t sample = 1; agree && sample < 3; ++sample) agree = Sample(env, sample).order(a, b) == first;
  if (agree) {
    const std::optional<int64_t> ha = env.hint(a), hb = env.hint(b);
    if (!ha || !hb || *ha < 2 || *hb < 2) return first;
    if (*ha == *hb && holds_in_general(env, a, b, first)) return first;
    agree = order_of(static_cast<double>(*ha), static_cast<double>(*hb)) == first;
  }
  if (agree) return first;
  if (type != nullptr && leads_to(env, *type, a, b)) return Order::Less;
  if (type != nullptr && leads_to(env, *type, b, a)) return Order::Greater;
  if (shapes.decide(env.pool().lt(a, b))) return Order::Less;
  return shapes.decide(env.pool().lt(b, a)) ? Order::Greater : Order::Equal;
}

bool known_one(sym::ShapeEnv& env, ExprId size) {
  if (env.pool().is_const(size)) return env.pool().is_const(size, 1);
  return env.known_equal(size, env.pool().constant(1));
}

// The stride of `operand` along dimension `dim` of the broadcast shape; nullopt: broadcast, without information.
std::optional<ExprId> stride_along(sym::ShapeEnv& env, const TensorType& operand, const std::vector<ExprId>& sizes,
                                   size_t dim) {
  const size_t offset = sizes.size() - operand.rank();
  if (dim < offset) return std::nullopt;
  const ExprId size = operand.sizes[dim - offset], stride = operand.strides[dim - offset];
  if (env.pool().is_const(stride, 0)) return std::nullopt;
  if (size != sizes[dim] && known_one(env, size) && !known_one(env, sizes[dim])) return std::nullopt;
  return stride;
}

// Whether `inner`, at present the inner dimension, should be outside `outer`: Greater. Equal: no operand decides.
Order should_swap(ShapeContext& shapes, const std::vector<ExprId>& sizes,
                  const std::vector<const TensorType*>& operands, size_t inner, size_t outer) {
  sym::ShapeEnv& env = shapes.env();
  for (const TensorType* operand : operands) {
    if (operand == nullptr) continue;
    const std::optional<ExprId> a = stride_along(env, *operand, sizes, inner);
    const std::optional<ExprId> b = stride_along(env, *operand, sizes, outer);
    if (!a || !b) continue;
    const Order order = compare(shapes, *a, *b, operand);
    if (order != Order::Equal) return order;
    // With equal strides the longer dimension goes outside. A dimension of size 1 can share its stride with another
    // dimension, and then the order is irrelevant. Two longer dimensions share a stride where elements overlap (unfold
    // by steps of 1).
    if (env.pool().is_const(sizes[inner]) && env.pool().is_const(sizes[outer])) {
      if (env.pool().const_value(sizes[inner]) > env.pool().const_value(sizes[outer])) return Order::Greater;
      continue;
    }
    if (known_one(env, sizes[inner])) continue;
    if (known_one(env, sizes[outer]) || shapes.decide(env.pool().gt(sizes[inner], sizes[outer]))) return Order::Greater;
  }
  return Order::Equal;
}

}  // namespace

std::vector<size_t> stride_order(ShapeContext& shapes, const std::vector<ExprId>& sizes,
                                 const std::vector<const TensorType*>& operands) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  // An insertion sort which skips incomparable dimensions. The result for ambiguous inputs is part of ATen's observable
  // behaviour, so the algorithm is fixed.
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      const Order swap = should_swap(shapes, sizes, operands, order[j], order[at]);
      if (swap == Order::Less) break;
      if (swap == Order::Equal) continue;
      std::swap(order[j], order[at]);
      at = j;
    }
  }
  return order;
}

std::vector<ExprId> strides_in_order(sym::ExprPool& pool, const std::vector<ExprId>& sizes,
                                     const std::vector<size_t>& order, bool empty_counts_as_one) {
  std::vector<ExprId> strides(sizes.size());
  ExprId next = pool.constant(1);
  for (const size_t dim : order) {
    strides[dim] = next;
    if (!empty_counts_as_one || !pool.is_const(sizes[dim], 0)) next = pool.mul(next, sizes[dim]);
  }
  return strides;
}

bool is_non_overlapping_and_dense(ShapeContext& shapes, const TensorType& type) {
  sym::ShapeEnv& env = shapes.env();
  if (graph::is_contiguous(env, type)) return true;
  ExprId expected = env.pool().constant(1);
  for (const size_t dim : stride_order(shapes, type.sizes, {&type})) {
    if (known_one(env, type.sizes[dim]) || env.pool().is_const(type.sizes[dim], 0)) continue;
    if (type.strides[dim] != expected && !env.known_equal(type.strides[dim], expected)) return false;
    expected = env.pool().mul(expected, type.sizes[dim]);
  }
  return true;
}

bool is_channels_last_contiguous(sym::ShapeEnv& env, const TensorType& type) {
  if (type.rank() != 4) return false;
  ExprId expected = env.pool().constant(1);
  for (const size_t dim : {1, 3, 2, 0}) {
    if (known_one(env, type.sizes[dim])) continue;
    if (type.strides[dim] != expected && !env.known_equal(type.strides[dim], expected)) return false;
    expected = env.pool().mul(expected, type.sizes[dim]);
  }
  return true;
}

// ---- ShapeContext

std::vector<ExprId> ShapeContext::contiguous_strides(const std::vector<ExprId>& sizes) {
  return graph::contiguous_strides(pool(), sizes);
}

std::vector<ExprId> ShapeContext::strides_for(MemoryFormat format, const std::vector<ExprId>& sizes) {
  switch (format) {
    case MemoryFormat::Contiguous:
    case MemoryFormat::Preserve:
      return contiguous_strides(sizes);
    case MemoryFormat::ChannelsLast:
      if (sizes.size() == 4) return strides_in_order(pool(), sizes, {1, 3, 2, 0}, false);
      return sizes.size() == 3 ? strides_in_order(pool(), sizes, {0, 2, 1}, false) : contiguous_strides(sizes);
    case MemoryFormat::ChannelsLast3d:
      if (sizes.size() == 5) return strides_in_order(pool(), sizes, {1, 4, 3, 2, 0}, false);
      return sizes.size() == 4 ? strides_in_order(pool(), sizes, {0, 3, 2, 1}, false) : contiguous_strides(sizes);
  }
  return contiguous_strides(sizes);
}

namespace {

// The result of TensorIterator's fast set-up, for operands with equal shape and layout.
std::optional<std::vector<ExprId>> same_layout_strides(ShapeContext& shapes, const std::vector<ExprId>& sizes,
                                                       const std::vector<const TensorType*>& operands) {
  bool contiguous = true, channels_last = true, same_strides = true;
  for (const TensorType* operand : operands) {
    if (operand == nullptr || operand->rank() != sizes.size()) return std::nullopt;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (operand->sizes[i] != sizes[i] && !shapes.env().known_equal(operand->sizes[i], sizes[i])) return std::nullopt;
    contiguous = contiguous && graph::is_contiguous(shapes.env(), *operand);
    channels_last = channels_last && is_channels_last_contiguous(shapes.env(), *operand);
    same_strides = same_strides && operand->strides == operands[0]->strides;
  }
  if (contiguous) return shapes.contiguous_strides(sizes);
  if (channels_last) return shapes.strides_for(MemoryFormat::ChannelsLast, sizes);
  if (same_strides && is_non_overlapping_and_dense(shapes, *operands[0])) return operands[0]->strides;
  return std::nullopt;
}

}  // namespace

std::vector<ExprId> ShapeContext::pointwise_strides(const std::vector<ExprId>& sizes,
                                                    const std::vector<const TensorType*>& operands) {
  if (sizes.size() < 2 || operands.empty()) return contiguous_strides(sizes);
  if (auto strides = same_layout_strides(*this, sizes, operands)) return *std::move(strides);
  // Operands that are each laid out row-major agree on that order, where no stride is of an empty dimension: equal
  // strides are told apart by sizes.
  const bool is_empty = std::any_of(sizes.begin(), sizes.end(), [&](ExprId size) { return pool().is_const(size, 0); });
  const bool row_major = !is_empty && std::all_of(operands.begin(), operands.end(), [&](const TensorType* operand) {
    return operand == nullptr || operand->strides == contiguous_strides(operand->sizes);
  });
  if (row_major) return contiguous_strides(sizes);
  const std::vector<size_t> order = stride_order(*this, sizes, operands);
  const bool rows = std::is_sorted(order.rbegin(), order.rend());
  return rows ? contiguous_strides(sizes) : strides_in_order(pool(), sizes, order, false);
}

std::vector<ExprId> ShapeContext::like_strides(const TensorType& type) {
  if (type.rank() == 0) return {};
  if (is_non_overlapping_and_dense(*this, type)) return type.strides;
  if (type.rank() == 1) return {pool().constant(1)};
  return strides_in_order(pool(), type.sizes, stride_order(*this, type.sizes, {&type}));
}

MemoryFormat ShapeContext::suggest_format(const TensorType& type) {
  const std::vector<size_t> dims = type.rank() == 4   ? std::vector<size_t>{1, 3, 2, 0}
                                   : type.rank() == 5 ? std::vector<size_t>{1, 4, 3, 2, 0}
                                                      : std::vector<size_t>{};
  if (dims.empty() || pool().is_const(type.strides[1], 0)) return MemoryFormat::Contiguous;
  ExprId least = pool().constant(0);
  for (const size_t dim : dims) {
    if (pool().is_const(type.sizes[dim], 0)) return MemoryFormat::Contiguous;
    const bool is_first = dim == dims.front();  // no stride is less than 0
    if (!is_first && compare(*this, type.strides[dim], least) == Order::Less) return MemoryFormat::Contiguous;
    // A single pixel of a single channel: every layout fits, and row-major is the default.
    if (dim == 0 && least == type.strides[1]) return MemoryFormat::Contiguous;
    least = type.strides[dim];
    if (!known_one(env(), type.sizes[dim])) least = pool().mul(least, type.sizes[dim]);
  }
  return type.rank() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

bool ShapeContext::is_contiguous(const TensorType& type) { return graph::is_contiguous(env(), type); }

}  // namespace cresset::ops
