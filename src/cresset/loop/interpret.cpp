#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "loop/analysis.h"
#include "loop/scalar_eval.h"
#include "sym/eval.h"

namespace cresset::loop {
namespace {

// Folds a reduction. Sums and products of floats are kept in double, because their order is unspecified and the result
// is rounded once.
class Accumulator {
 public:
  Accumulator(Combine combine, DType from) : combine_(combine), from_(from) { reset(); }

  void reset() {
    index_ = 0;
    first_ = true;
    value_ = {};
    const bool real = is_float(from_);
    if (combine_ == Combine::Prod) value_ = {1, 1};
    if (combine_ == Combine::All) value_.integer = 1;
    if (combine_ == Combine::Max)
      value_ = real ? Value{-std::numeric_limits<double>::infinity(), 0} : Value{0, least()};
    if (combine_ == Combine::Min)
      value_ = real ? Value{std::numeric_limits<double>::infinity(), 0} : Value{0, greatest()};
  }

  void add(Value v, int64_t position) {
    switch (combine_) {
      case Combine::Sum:
        value_.number += v.number;
        value_.integer = wrap_integer(
            from_, static_cast<int64_t>(static_cast<uint64_t>(value_.integer) + static_cast<uint64_t>(v.integer)));
        return;
      case Combine::Prod:
        value_.number *= v.number;
        value_.integer = wrap_integer(
            from_, static_cast<int64_t>(static_cast<uint64_t>(value_.integer) * static_cast<uint64_t>(v.integer)));
        return;
      case Combine::Any:
        value_.integer |= v.integer;
        return;
      case Combine::All:
        value_.integer &= v.integer;
        return;
      case Combine::Max:
      case Combine::Min:
        if (beats(v)) value_ = v;
        return;
      case Combine::ArgMax:
      case Combine::ArgMin:
        if (first_ || beats(v)) {
          value_ = v;
          index_ = position;
        }
        first_ = false;
        return;
    }
  }

  Value result() const {
    if (combine_ == Combine::ArgMax || combine_ == Combine::ArgMin) return {0, index_};
    return {is_float(from_) ? round_number(from_, value_.number) : 0, value_.integer};
  }

 private:
  bool beats(Value v) const {
    const bool greater = combine_ == Combine::Max || combine_ == Combine::ArgMax;
    if (!is_float(from_)) return greater ? v.integer > value_.integer : v.integer < value_.integer;
    if (std::isnan(value_.number)) return false;
    if (std::isnan(v.number)) return true;
    return greater ? v.number > value_.number : v.number < value_.number;
  }
  int64_t least() const { return from_ == DType::Bool || from_ == DType::U8 ? 0 : -signed_limit() - 1; }
  int64_t greatest() const { return from_ == DType::Bool ? 1 : from_ == DType::U8 ? 255 : signed_limit(); }
  int64_t signed_limit() const { return static_cast<int64_t>(~uint64_t{0} >> (65 - 8 * byte_size(from_))); }

  Combine combine_;
  DType from_;
  Value value_;
  int64_t index_ = 0;
  bool first_ = true;
};

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, void* const* buffers, const int64_t* symbols)
      : kernel_(kernel), buffers_(buffers), analysis_(analyze(kernel)), values_(kernel.scalars.size()) {
    const std::vector<VarId> order = kernel.size_symbols();
    for (size_t i = 0; i < order.size(); ++i) numbers_[order[i]] = symbols[i];
    for (const Binding& b : kernel.bindings) bound_[b.var] = b.scalar;
    for (const Scalar& s : kernel.scalars)
      if (s.op == Op::Reduce) accumulators_.emplace_back(s.combine, kernel[s.a].dtype);
    for (uint32_t i = 0; i < kernel.scalars.size(); ++i)
      if (kernel.scalars[i].op == Op::Scan)
        scans_.emplace(i, Accumulator(kernel.scalars[i].combine, kernel.scalars[i].dtype));
    for (const Dim& dim : kernel.dims)
      (dim.kind == Dim::Kind::Outer ? outer_ : inner_).push_back({dim.var, eval(dim.extent)});
  }

  void run() {
    for_each_point(outer_, [&](int64_t) { row(); });
  }

 private:
  struct Loop {
    VarId var;
    int64_t extent;
  };

  template <class F>
  void for_each_point(const std::vector<Loop>& loops, F&& f) {
    int64_t count = 1;
    for (const Loop& loop : loops) count *= loop.extent;
    for (int64_t p = 0; p < count; ++p) {
      int64_t rest = p;
      for (size_t i = loops.size(); i-- > 0;) {
        numbers_[loops[i].var] = rest % loops[i].extent;
        rest /= loops[i].extent;
      }
      f(p);
    }
  }

  int64_t eval(ExprId e) {
    auto value_of = [&](VarId var) -> std::optional<int64_t> {
      if (auto it = bound_.find(var); it != bound_.end()) return values_[it->second.index].integer;
      return numbers_.at(var);
    };
    return sym::eval(kernel_.env().pool(), e, value_of).value_or(0);
  }

  void compute(size_t i) {
    const Scalar& s = kernel_.scalars[i];
    auto value = [&](ScalarId id) { return id.valid() ? values_[id.index] : Value{}; };
    if (s.op == Op::Reduce) return;
    if (s.op == Op::Const)
      values_[i] = {s.number, s.integer};
    else if (s.op == Op::Size)
      values_[i] = {0, eval(s.expr)};
    else if (s.op == Op::Load)
      values_[i] = load(s);
    else if (s.op == Op::Scan)
      values_[i] = scanned(i);
    else
      values_[i] = apply(s, kernel_[s.a].dtype, value(s.a), value(s.b), value(s.c));
  }

  Value scanned(size_t i) {
    Accumulator& scan = scans_.at(static_cast<uint32_t>(i));
    scan.add(values_[kernel_.scalars[i].a.index], 0);
    return scan.result();
  }

  Value load(const Scalar& s) {
    if (s.a.valid() && !values_[s.a.index].integer) return {};
    return load_value(kernel_.buffers[s.buffer.index].dtype, buffers_[s.buffer.index], eval(s.expr));
  }

  void compute_level(bool point, uint16_t stage) {
    for (size_t i = 0; i < values_.size(); ++i)
      if ((analysis_.is_point[i] != 0) == point && analysis_.stage[i] <= stage) compute(i);
  }

  void fold(uint16_t stage, int64_t position) {
    size_t next = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      const Scalar& s = kernel_.scalars[i];
      if (s.op != Op::Reduce) continue;
      Accumulator& accumulator = accumulators_[next++];
      if (analysis_.stage[i] == stage + 1) accumulator.add(values_[s.a.index], position);
    }
  }

  void finish(uint16_t stage) {
    size_t next = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (kernel_.scalars[i].op != Op::Reduce) continue;
      Accumulator& accumulator = accumulators_[next++];
      if (analysis_.stage[i] != stage + 1) continue;
      values_[i] = accumulator.result();
      accumulator.reset();
    }
  }

  void store(bool point) {
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      const Store& s = kernel_.stores[i];
      if ((analysis_.store_is_point[i] != 0) != point) continue;
      if (s.condition.valid() && !values_[s.condition.index].integer) continue;
      const int64_t address = eval(s.address);
      const DType dtype = kernel_.buffers[s.buffer.index].dtype;
      Value value = values_[s.value.index];
      if (s.combine) value = updated(s, dtype, address);
      store_value(dtype, buffers_[s.buffer.index], address, value);
    }
  }

  Value updated(const Store& s, DType dtype, int64_t address) {
    const Value old = load_value(dtype, buffers_[s.buffer.index], address), value = values_[s.value.index];
    const Op op = s.combine == Combine::Sum ? Op::Add : s.combine == Combine::Max ? Op::Maximum : Op::Minimum;
    const DType from = compute_dtype(dtype);
    return apply({.op = op, .dtype = from}, from, old, value, {});
  }

  void row() {
    for (uint16_t pass = 0;; ++pass) {
      compute_level(/*point=*/false, pass);
      const bool last = pass == analysis_.stages;
      for (auto& [scalar, scan] : scans_) scan.reset();
      for_each_point(inner_, [&](int64_t position) {
        compute_level(/*point=*/true, pass);
        if (last)
          store(/*point=*/true);
        else
          fold(pass, position);
      });
      if (last) break;
      finish(pass);
    }
    store(/*point=*/false);
  }

  const Kernel& kernel_;
  void* const* buffers_;
  Analysis analysis_;
  std::vector<Value> values_;
  std::vector<Accumulator> accumulators_;
  std::unordered_map<uint32_t, Accumulator> scans_;  // by scalar
  std::vector<Loop> outer_, inner_;
  std::unordered_map<VarId, int64_t> numbers_;
  std::unordered_map<VarId, ScalarId> bound_;
};

}  // namespace

void interpret(const Kernel& kernel, void* const* buffers, const int64_t* symbols) {
  Interpreter(kernel, buffers, symbols).run();
}

}  // namespace cresset::loop
