#include "loop/canonical.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

namespace cresset::loop {
namespace {

uint64_t mix(uint64_t seed, uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2);
  return seed * 0xff51afd7ed558ccdull;
}

uint64_t text_hash(std::string_view text) { return std::hash<std::string_view>{}(text); }

bool commutes(sym::Kind kind) {
  return kind == sym::Kind::Add || kind == sym::Kind::Mul || kind == sym::Kind::Min || kind == sym::Kind::Max;
}

std::string scalar_text(const Scalar& s, CanonicalNames& names) {
  std::string out = fmt::format("{} {}", static_cast<int>(s.op), static_cast<int>(s.dtype));
  for (ScalarId operand : {s.a, s.b, s.c})
    if (operand.valid()) fmt::format_to(std::back_inserter(out), " %{}", operand.index);
  if (s.op == Op::Const)
    fmt::format_to(std::back_inserter(out), " {:x} {}", std::bit_cast<uint64_t>(s.number), s.integer);
  if (s.op == Op::RoundTo) fmt::format_to(std::back_inserter(out), " {}", static_cast<int>(s.round));
  if (s.op == Op::Reduce || s.op == Op::Scan)
    fmt::format_to(std::back_inserter(out), " {}", static_cast<int>(s.combine));
  if (s.buffer.valid()) fmt::format_to(std::back_inserter(out), " b{}", s.buffer.index);
  if (s.expr.valid()) out += " [" + names.text(s.expr) + "]";
  return out;
}

}  // namespace

CanonicalNames::CanonicalNames(const Kernel& kernel) : pool_(kernel.env().pool()) {
  for (size_t i = 0; i < kernel.dims.size(); ++i) fixed_[kernel.dims[i].var] = fmt::format("d{}", i);
  for (const Binding& b : kernel.bindings) fixed_[b.var] = fmt::format("i{}", b.scalar.index);
  for (const Dim& dim : kernel.dims) mention(dim.extent);
  for (const Scalar& scalar : kernel.scalars)
    if (scalar.expr.valid()) mention(scalar.expr);
  for (const Store& store : kernel.stores) mention(store.address);
}

uint64_t CanonicalNames::shape(ExprId id) {
  const sym::Expr& e = pool_[id];
  const bool is_leaf = e.kind == sym::Kind::Const || e.kind == sym::Kind::Var;
  if (const auto known = is_leaf ? shapes_.end() : shapes_.find(id); known != shapes_.end()) return known->second;
  const uint64_t kind = static_cast<uint64_t>(e.kind) + 1;
  if (e.kind == sym::Kind::Const) return mix(kind, static_cast<uint64_t>(e.value));
  if (e.kind == sym::Kind::Var) {
    const VarId var{static_cast<uint32_t>(e.value)};
    if (auto it = fixed_.find(var); it != fixed_.end()) return mix(kind, text_hash(it->second));
    auto it = number_.find(var);
    return mix(kind, it == number_.end() ? 1'000'000 : it->second);
  }
  uint64_t out = mix(kind, e.count);
  for (ExprId operand : pool_.operands(id)) {
    const uint64_t h = shape(operand);
    out = commutes(e.kind) ? out + h * 0x9e3779b97f4a7c15ull : mix(out, h);
  }
  shapes_.emplace(id, out);
  return out;
}

std::vector<ExprId> CanonicalNames::ordered_operands(ExprId id) {
  std::span<const ExprId> operands = pool_.operands(id);
  std::vector<ExprId> out(operands.begin(), operands.end());
  if (!commutes(pool_[id].kind)) return out;
  std::vector<std::pair<uint64_t, ExprId>> keyed;
  for (ExprId operand : out) keyed.emplace_back(shape(operand), operand);
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < keyed.size(); ++i) out[i] = keyed[i].second;
  return out;
}

// Mentions symbols in the order of text().
void CanonicalNames::mention(ExprId id) {
  const sym::Expr& e = pool_[id];
  if (e.kind == sym::Kind::Const) return;
  if (e.kind == sym::Kind::Var) return number(VarId{static_cast<uint32_t>(e.value)});
  if (!mentioned_.insert(id).second) return;
  for (ExprId operand : ordered_operands(id)) mention(operand);
}

void CanonicalNames::number(VarId var) {
  if (fixed_.contains(var)) return;
  if (!number_.try_emplace(var, static_cast<uint32_t>(symbols_.size())).second) return;
  symbols_.push_back(var);
  shapes_.clear();
}

std::string CanonicalNames::name(VarId var) {
  if (auto it = fixed_.find(var); it != fixed_.end()) return it->second;
  number(var);
  return fmt::format("s{}", number_.at(var));
}

std::string CanonicalNames::text(ExprId id) {
  const sym::Expr& e = pool_[id];
  if (e.kind == sym::Kind::Const) return fmt::format("{}", e.value);
  if (e.kind == sym::Kind::Var) return name(VarId{static_cast<uint32_t>(e.value)});
  std::string out = fmt::format("({}", static_cast<int>(e.kind));
  for (ExprId operand : ordered_operands(id)) out += " " + text(operand);
  return out + ")";
}

std::vector<VarId> Kernel::size_symbols() const { return CanonicalNames(*this).symbols(); }

std::string canonical_text(const Kernel& kernel) {
  CanonicalNames names(kernel);
  std::string out;
  for (const Dim& dim : kernel.dims)
    fmt::format_to(std::back_inserter(out), "{}{}\n", dim.kind == Dim::Kind::Outer ? "o " : "i ",
                   names.text(dim.extent));
  for (const Buffer& buffer : kernel.buffers)
    fmt::format_to(std::back_inserter(out), "b {}{}{}{}\n", static_cast<int>(buffer.dtype), buffer.read ? " r" : "",
                   buffer.written ? " w" : "", buffer.by_value ? " v" : "");
  for (const Binding& b : kernel.bindings) fmt::format_to(std::back_inserter(out), "x %{}\n", b.scalar.index);
  for (const Scalar& scalar : kernel.scalars) out += scalar_text(scalar, names) + "\n";
  for (const Store& s : kernel.stores) {
    fmt::format_to(std::back_inserter(out), "st b{} %{} [{}]", s.buffer.index, s.value.index, names.text(s.address));
    if (s.condition.valid()) fmt::format_to(std::back_inserter(out), " if %{}", s.condition.index);
    if (s.combine) fmt::format_to(std::back_inserter(out), " by {}", static_cast<int>(*s.combine));
    out += '\n';
  }
  return out;
}

}  // namespace cresset::loop
