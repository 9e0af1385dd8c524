#include "base/break_reason.h"

#include <iterator>

namespace cresset {
namespace {

struct BreakRow {
  std::string_view name, description, remedy;
};

constexpr BreakRow kBreakRows[] = {
#define CRESSET_BREAK_KIND(name, description, remedy) {#name, description, remedy},
#include "base/break_reasons.def"
#undef CRESSET_BREAK_KIND
};

const BreakRow& row_of(BreakKind kind) { return kBreakRows[static_cast<size_t>(kind)]; }

}  // namespace

std::string_view name_of(BreakKind kind) { return row_of(kind).name; }
std::string_view describe(BreakKind kind) { return row_of(kind).description; }
std::string_view remedy_of(BreakKind kind) { return row_of(kind).remedy; }

std::optional<BreakKind> kind_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kBreakRows); ++i)
    if (kBreakRows[i].name == name) return static_cast<BreakKind>(i);
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
