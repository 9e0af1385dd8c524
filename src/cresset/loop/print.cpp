#include <fmt/format.h>

#include <iterator>

#include "loop/kernel.h"

namespace cresset::loop {
namespace {

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel), names_(kernel.env().names()) {
    for (size_t i = 0; i < kernel.dims.size(); ++i) names_[kernel.dims[i].var] = fmt::format("d{}", i);
    for (const Binding& b : kernel.bindings) names_[b.var] = fmt::format("i{}", b.scalar.index);
  }

  std::string run() {
    put("kernel {{\n");
    for (size_t i = 0; i < kernel_.dims.size(); ++i)
      put("  {} d{} < {}\n", kernel_.dims[i].kind == Dim::Kind::Outer ? "outer" : "inner", i,
          expr(kernel_.dims[i].extent));
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) buffer(i);
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) scalar(i);
    for (const Store& s : kernel_.stores) store(s);
    put("}}\n");
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  std::string expr(ExprId id) const { return sym::to_string(kernel_.env().pool(), id, names_); }

  void buffer(size_t i) {
    const Buffer& b = kernel_.buffers[i];
    put("  b{}: {}{}{}{}{}\n", i, to_string(b.dtype), b.read ? " read" : "", b.written ? " written" : "",
        b.by_value ? " by value" : "", b.name.empty() ? "" : " # " + b.name);
  }

  void store(const Store& s) {
    put("  b{}[{}] = ", s.buffer.index, expr(s.address));
    if (s.combine) put("{} ", to_string(*s.combine));
    put("%{}", s.value.index);
    if (s.condition.valid()) put(" if %{}", s.condition.index);
    put("\n");
  }

  void scalar(size_t i) {
    const Scalar& s = kernel_.scalars[i];
    put("  %{} = {} {}", i, to_string(s.op), to_string(s.dtype));
    if (s.op == Op::Const && is_float(s.dtype)) put(" {}", s.number);
    if (s.op == Op::Const && !is_float(s.dtype)) put(" {}", s.integer);
    if (s.op == Op::Size) put(" {}", expr(s.expr));
    if (s.op == Op::Load) put(" b{}[{}]{}", s.buffer.index, expr(s.expr), s.a.valid() ? " if" : "");
    if (s.op == Op::RoundTo) put(" {}", to_string(s.round));
    if (s.op == Op::Reduce || s.op == Op::Scan) put(" {}", to_string(s.combine));
    for (ScalarId operand : {s.a, s.b, s.c})
      if (operand.valid()) put(" %{}", operand.index);
    put("\n");
  }

  const Kernel& kernel_;
  sym::VarNames names_;
  std::string out_;
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer(kernel).run(); }

}  // namespace cresset::loop
