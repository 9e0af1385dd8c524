#include "base/break_reason.h"

#include <iterator>

namespace cresset {
namespace {

struct Row {
  std::string_view name, description, remedy;
};

constexpr Row kRows[] = {
#define CRESSET_BREAK_KIND(name, description, remedy) {#name, description, remedy},
#include "base/break_reasons.def"
#undef CRESSET_BREAK_KIND
};

const Row& row_of(BreakKind kind) { return kRows[static_cast<size_t>(kind)]; }

}  // namespace

std::string_view name_of(BreakKind kind) { return row_of(kind).name; }
std::string_view describe(BreakKind kind) { return row_of(kind).description; }
std::string_view remedy_of(BreakKind kind) { return row_of(kind).remedy; }

std::optional<BreakKind> kind_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].name == name) return static_cast<BreakKind>(i);
  return std::nullopt;
}

std::string BreakReason::text() const {
  std::string out = detail;
  if (!location.empty()) out += " at " + location;
  return out + remark;
}

std::string BreakReason::advice() const {
  return "[" + std::string(name()) + ": " + std::string(describe(kind)) + "; remedy: " + std::string(remedy()) + "]";
}

std::string BreakReason::with_remedy() const { return text() + " " + advice(); }

}  // namespace cresset
