#include "loop/kernel.h"

#include <bit>

namespace cresset::loop {
namespace {

constexpr int kArity[] = {
#define CRESSET_SCALAR(name, arity, text) arity,
#include "loop/kinds.def"
#undef CRESSET_SCALAR
};
constexpr std::string_view kText[] = {
#define CRESSET_SCALAR(name, arity, text) text,
#include "loop/kinds.def"
#undef CRESSET_SCALAR
};

size_t combine_hash(size_t seed, size_t value) { return (seed ^ value) * 0x9e3779b97f4a7c15ull + (seed >> 29); }

size_t hash_of(const Scalar& s) {
  size_t h = static_cast<size_t>(s.op) << 16 | static_cast<size_t>(s.dtype) << 8 | static_cast<size_t>(s.combine);
  for (uint32_t part : {s.a.index, s.b.index, s.c.index, s.expr.index, s.buffer.index}) h = combine_hash(h, part);
  h = combine_hash(h, std::bit_cast<uint64_t>(s.number));
  h = combine_hash(h, static_cast<size_t>(s.integer));
  return combine_hash(h, static_cast<size_t>(s.round));
}

// Compares numbers by bits: -0 and 0 differ, and a NaN equals itself.
bool same(const Scalar& x, const Scalar& y) {
  Scalar a = x, b = y;
  const bool numbers = std::bit_cast<uint64_t>(a.number) == std::bit_cast<uint64_t>(b.number);
  a.number = b.number = 0;
  return numbers && a == b;
}

}  // namespace

int arity(Op op) { return kArity[static_cast<size_t>(op)]; }
std::string_view to_string(Op op) { return kText[static_cast<size_t>(op)]; }

std::string_view to_string(Combine combine) {
  switch (combine) {
    case Combine::Sum:
      return "sum";
    case Combine::Prod:
      return "prod";
    case Combine::Max:
      return "max";
    case Combine::Min:
      return "min";
    case Combine::Any:
      return "any";
    case Combine::All:
      return "all";
    case Combine::ArgMax:
      return "argmax";
    case Combine::ArgMin:
      return "argmin";
  }
  return "?";
}

ScalarId Kernel::add(Scalar scalar) {
  const size_t hash = hash_of(scalar);
  auto [begin, end] = consed_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (same(scalars[it->second.index], scalar)) return it->second;
  const ScalarId id{static_cast<uint32_t>(scalars.size())};
  if (scalar.op == Op::Load) buffers[scalar.buffer.index].read = true;
  scalars.push_back(std::move(scalar));
  consed_.emplace(hash, id);
  return id;
}

}  // namespace cresset::loop
