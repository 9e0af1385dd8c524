#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "loop/analysis.h"

namespace cresset::loop {
namespace {

// Checks a kernel and reports the first violation.
class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  std::string run() {
    dims();
    for (size_t i = 0; i < kernel_.bindings.size(); ++i) binding(i);
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) scalar(i);
    if (error_.empty()) stores();
    return std::move(error_);
  }

 private:
  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
    if (!ok && error_.empty()) error_ = fmt::format(format, std::forward<Args>(args)...);
  }

  void dims() {
    bool inner_seen = false;
    for (const Dim& dim : kernel_.dims) {
      require(dim.var.valid() && dim.extent.valid(), "a dimension without variable or extent");
      require(loop_vars_.insert(dim.var).second, "a dimension variable is used twice");
      inner_seen |= dim.kind == Dim::Kind::Inner;
      require(!(inner_seen && dim.kind == Dim::Kind::Outer), "an outer dimension after an inner one");
      if (error_.empty()) symbols_only(dim.extent, "an extent");
    }
  }

  void symbols_only(ExprId e, std::string_view what) {
    std::vector<VarId> vars;
    kernel_.env().pool().collect_vars(e, vars);
    for (VarId var : vars)
      require(kernel_.env().symbol(var) != nullptr, "{} mentions a variable that is no symbol", what);
  }

  void binding(size_t i) {
    const Binding& b = kernel_.bindings[i];
    require(b.scalar.index < kernel_.scalars.size(), "binding {} names no scalar", i);
    if (!error_.empty()) return;
    require(kernel_[b.scalar].dtype == DType::I64, "binding {} is not i64", i);
    require(bound_.emplace(b.var, b.scalar).second && !loop_vars_.count(b.var), "binding {} binds a variable twice", i);
  }

  // `before`: bound scalars must precede this scalar.
  void address(ExprId e, size_t before, std::string_view what) {
    require(e.valid(), "{} has no expression", what);
    if (!error_.empty()) return;
    std::vector<VarId> vars;
    kernel_.env().pool().collect_vars(e, vars);
    for (VarId var : vars) {
      if (loop_vars_.count(var)) continue;
      if (auto it = bound_.find(var); it != bound_.end()) {
        require(it->second.index < before, "{} uses an index before it is computed", what);
      } else {
        require(kernel_.env().symbol(var) != nullptr, "{} mentions an unknown variable", what);
      }
    }
  }

  void operands(size_t i, const Scalar& s) {
    const ScalarId ids[3] = {s.a, s.b, s.c};
    const int expected = s.op == Op::Load ? (s.a.valid() ? 1 : 0) : arity(s.op);
    for (int k = 0; k < 3; ++k) {
      require(ids[k].valid() == (k < expected), "%{}: {} takes {} operands", i, to_string(s.op), expected);
      require(!ids[k].valid() || ids[k].index < i, "%{}: operand after its user", i);
    }
  }

  void scalar(size_t i) {
    const Scalar& s = kernel_.scalars[i];
    require(s.dtype == compute_dtype(s.dtype), "%{}: scalars are never floats of 8 or 16 bits", i);
    require(category(s.dtype) <= DTypeCategory::Float, "%{}: a scalar without arithmetic", i);
    operands(i, s);
    if (error_.empty()) types(i, s);
  }

  void types(size_t i, const Scalar& s) {
    auto operand = [&](ScalarId id) { return kernel_[id].dtype; };
    switch (s.op) {
      case Op::Const:
        return;
      case Op::Size:
        require(s.dtype == DType::I64, "%{}: a size is i64", i);
        return address(s.expr, i, "size");
      case Op::Load:
        require(s.buffer.index < kernel_.buffers.size(), "%{}: load from no buffer", i);
        if (!error_.empty()) return;
        require(s.dtype == compute_dtype(kernel_.buffers[s.buffer.index].dtype), "%{}: load of another dtype", i);
        require(kernel_.buffers[s.buffer.index].read, "%{}: load from a buffer not marked read", i);
        require(!s.a.valid() || operand(s.a) == DType::Bool, "%{}: mask is not bool", i);
        return address(s.expr, i, "load");
      case Op::Cast:
        return;
      case Op::BitCast:
        return require(byte_size(s.dtype) == byte_size(operand(s.a)), "%{}: bitcast changes the size", i);
      case Op::RoundTo:
        return require(s.dtype == DType::F32 && operand(s.a) == DType::F32 && compute_dtype(s.round) == DType::F32,
                       "%{}: round_to is f32 to f32", i);
      case Op::Select:
        require(operand(s.a) == DType::Bool, "%{}: condition is not bool", i);
        return require(operand(s.b) == s.dtype && operand(s.c) == s.dtype, "%{}: branches of another dtype", i);
      case Op::Philox:
        return require(operand(s.a) == DType::I64 && operand(s.b) == DType::I64 && operand(s.c) == DType::I64 &&
                           s.dtype == DType::I64,
                       "%{}: philox is i64", i);
      case Op::Reduce:
        return reduce(i, s);
      case Op::Scan:
        return scan(i, s);
      default:
        return plain(i, s);
    }
  }

  void reduce(size_t i, const Scalar& s) {
    const DType from = kernel_[s.a].dtype;
    const bool arg = s.combine == Combine::ArgMax || s.combine == Combine::ArgMin;
    const bool logical = s.combine == Combine::Any || s.combine == Combine::All;
    require(s.dtype == (arg ? DType::I64 : from), "%{}: reduction's dtype", i);
    require(!logical || from == DType::Bool, "%{}: any and all fold bools", i);
    const bool counts = s.combine == Combine::Sum || s.combine == Combine::Prod;
    require(!counts || from != DType::Bool, "%{}: sum of bools", i);
  }

  void scan(size_t i, const Scalar& s) {
    const auto inner = std::count_if(kernel_.dims.begin(), kernel_.dims.end(),
                                     [](const Dim& dim) { return dim.kind == Dim::Kind::Inner; });
    require(inner == 1, "%{}: a scan over {} inner dimensions", i, inner);
    require(s.combine <= Combine::Min, "%{}: a scan of another kind", i);
    require(s.dtype == kernel_[s.a].dtype && s.dtype != DType::Bool, "%{}: scan's dtype", i);
  }

  void plain(size_t i, const Scalar& s) {
    const DType from = kernel_[s.a].dtype;
    const bool predicate = (s.op >= Op::Eq && s.op <= Op::Ge) || s.op == Op::IsNan || s.op == Op::IsInf;
    require(s.dtype == (predicate ? DType::Bool : from), "%{}: {} changes the dtype", i, to_string(s.op));
    for (ScalarId other : {s.b, s.c})
      require(!other.valid() || kernel_[other].dtype == from, "%{}: operand dtypes differ", i);
    const bool float_only = s.op == Op::Div || s.op == Op::Pow || (s.op >= Op::Exp && s.op <= Op::Lgamma) ||
                            (s.op >= Op::Atan2 && s.op <= Op::NextAfter);
    require(!float_only || is_float(from), "%{}: {} wants floats", i, to_string(s.op));
    const bool bits =
        (s.op >= Op::BitAnd && s.op <= Op::ShiftRight) || s.op == Op::FloorDivInt || s.op == Op::TruncDivInt;
    require(!bits || !is_float(from), "%{}: {} wants integers", i, to_string(s.op));
  }

  void stores() {
    for (const Store& store : kernel_.stores) {
      require(store.buffer.index < kernel_.buffers.size(), "store to no buffer");
      require(store.value.index < kernel_.scalars.size(), "store of no scalar");
      if (!error_.empty()) return;
      const Buffer& buffer = kernel_.buffers[store.buffer.index];
      require(buffer.written, "store to a buffer not marked written");
      require(!buffer.by_value, "store to a buffer that is given by value");
      require(kernel_[store.value].dtype == compute_dtype(buffer.dtype), "store of another dtype");
      const ScalarId condition = store.condition;
      require(!condition.valid() || condition.index < kernel_.scalars.size(), "store under no condition");
      if (!error_.empty()) return;
      require(!condition.valid() || kernel_[condition].dtype == DType::Bool,
              "store under a condition that is not bool");
      const bool extreme = store.combine == Combine::Max || store.combine == Combine::Min;
      require(!store.combine || store.combine == Combine::Sum || extreme, "store with another combine");
      require(!store.combine || buffer.dtype != DType::Bool, "store of bools with a combine");
      address(store.address, kernel_.scalars.size(), "store");
    }
  }

  const Kernel& kernel_;
  std::unordered_set<VarId> loop_vars_;
  std::unordered_map<VarId, ScalarId> bound_;
  std::string error_;
};

}  // namespace

std::string verify(const Kernel& kernel) { return Verifier(kernel).run(); }

}  // namespace cresset::loop
