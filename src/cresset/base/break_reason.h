// Why a graph segment ends early, or why a call runs eagerly. Decisions read the kind; only messages read the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cresset {

enum class BreakKind : unsigned char {
#define CRESSET_BREAK_KIND(name, description, remedy) name,
#include "base/break_reasons.def"
#undef CRESSET_BREAK_KIND
};
std::string_view name_of(BreakKind kind);  // the identifier, for programs
std::optional<BreakKind> kind_named(std::string_view name);
std::string_view describe(BreakKind kind);
std::string_view remedy_of(BreakKind kind);

struct BreakReason {
  BreakReason() = default;  // no reason
  BreakReason(BreakKind kind, std::string detail) : kind(kind), detail(std::move(detail)) {}

  BreakKind kind = BreakKind::InternalError;
  std::string detail;    // the construct, in the user's terms
  std::string location;  // "file.py:12 in function"; may be empty
  std::string remark;    // the end of the text, such as the obstacle to a resume point; may be empty

  bool empty() const { return detail.empty() && location.empty() && remark.empty(); }
  bool is(BreakKind which) const { return kind == which && !empty(); }
  std::string_view name() const { return name_of(kind); }
  std::string_view remedy() const { return remedy_of(kind); }
  std::string text() const;         // "detail at location" and the remark
  std::string advice() const;       // "[kind: description; remedy: ...]"
  std::string with_remedy() const;  // the text and the advice
  bool operator==(const BreakReason& other) const = default;
};

}  // namespace cresset
